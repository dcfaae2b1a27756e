"""The explorer: its numbers are the labs', its choice lives in the address, bad input is named."""

from itertools import product

import pytest
from playwright.sync_api import Locator, Page, expect

from sitebuild.explorer import ITEMSIZE, captured, dtypes
from snippets.hardware import DEVICES, fact
from snippets.hbm_traffic import attention_flops, compulsory_bytes, issued_bytes, naive_bytes
from snippets.roofline import attainable, bound, intensity, ridge_point
from snippets.tile_budget import tile_bytes

pytestmark = pytest.mark.xdist_group("site")
PAGE = "practice/explorer/"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
CAPTURED = "?device=H200&dtype=bf16&B=8&H=32&N=8192&d=128&Br=128"
GRID = [
    {"device": device, "dtype": dtype, "B": B, "H": H, "N": N, "d": d, "Br": Br}
    for device in DEVICES
    for dtype in dtypes(device)
    for (B, H), N, d, Br in product(
        ((1, 1), (3, 40), (65_536, 1024)),
        (1, 127, 128, 4096, 16_385, 2**20),
        (1, 64, 80, 1024),
        (1, 64, 128, 1000),
    )
]


def opened(site, visit, query: str = "") -> Page:
    page = visit.open(site.url + PAGE + query)
    expect(page.locator(".explorer form")).to_be_visible()
    return page


def field(page: Page, name: str) -> Locator:
    labels = {"N": "Queries and keys, N", "d": "Head dimension, d", "Br": "Query tile, Br"}
    labels |= {"B": "Batch, B", "H": "Heads, H", "device": "Device", "dtype": "Data type"}
    return page.get_by_label(labels[name], exact=True)


def row(page: Page, name: str) -> list[str]:
    table = page.locator(".explorer-results table").first
    return table.locator("tr", has=page.get_by_role("rowheader", name=name, exact=True)).locator(
        "td"
    ).all_text_contents()  # fmt: skip


def choice(page: Page) -> dict[str, str]:
    names = ("device", "dtype", "B", "H", "N", "d", "Br")
    return {name: field(page, name).input_value() for name in names}


def address(page: Page) -> str:
    return page.evaluate("location.search")


def labs(device: str, dtype: str, B: int, H: int, N: int, d: int, Br: int) -> list[object]:
    """The same numbers as the model in the page gives, by the labs."""
    e, rate, peak = ITEMSIZE[dtype], fact(device, "hbm_rate").value, dtypes(device)[dtype]
    flops = B * H * attention_flops(N, d)
    heads = (naive_bytes(N, d, e), issued_bytes(N, d, Br, e), compulsory_bytes(N, d, e))
    found: list[object] = [str(flops), ridge_point(peak, rate), str(tile_bytes(Br, 1, d)["O"])]
    for count in (B * H * one for one in heads):
        x = intensity(flops, count)
        top = attainable(x, peak, rate)
        fewer = B * H * heads[0] / count
        found += [str(count), fewer, x, bound(x, peak, rate), top, flops / top]
    return found


def test_the_page_computes_what_the_labs_compute_on_a_grid(site, visit) -> None:
    page = visit.open(site.url)
    found = page.evaluate(
        """async ([url, rows]) => {
          const { explore } = await import(url)
          return rows.map(row => {
            const { flops, ridge, outputTile, counts } = explore(row)
            return [String(flops), ridge, String(outputTile), ...counts.flatMap(count => [
              String(count.bytes), count.fewer, count.intensity, count.bound, count.attainable,
              count.seconds])]
          })
        }""",
        [
            site.url + "assets/js/explorer_model.js",
            [
                {
                    **one,
                    "itemsize": ITEMSIZE[one["dtype"]],
                    "rate": fact(one["device"], "hbm_rate").value,
                    "peak": dtypes(one["device"])[one["dtype"]],
                }
                for one in GRID
            ],
        ],
    )
    assert len(GRID) >= 2000
    assert found == [labs(**one) for one in GRID]


def test_on_the_ridge_it_is_compute_bound_as_in_the_lab(site, visit) -> None:
    page = visit.open(site.url)
    cases = [(2.0, 4.0, 2.0), (1.9, 4.0, 2.0), (2.1, 4.0, 2.0)]
    found = page.evaluate(
        """async ([url, cases]) => {
          const { attainable, bound } = await import(url)
          return cases.map(one => [bound(...one), attainable(...one)])
        }""",
        [site.url + "assets/js/explorer_model.js", cases],
    )
    assert found == [[bound(*one), attainable(*one)] for one in cases]
    assert found[0][0] == "compute-bound"


def test_a_number_is_rounded_as_python_rounds_it(site, visit) -> None:
    page = visit.open(site.url)
    eighths = [count / 8 for count in range(2000)]
    others = [1.005 * 1.37**power for power in range(60)] + [0.15, 0.25, 2.675, 1e15 + 0.25]
    found = page.evaluate(
        """async ([url, values]) => {
          const { fixed } = await import(url)
          return values.map(value => [0, 1, 2].map(digits => fixed(value, digits)))
        }""",
        [site.url + "assets/js/explorer_format.js", eighths + others],
    )
    assert found == [[f"{value:,.{digits}f}" for digits in (0, 1, 2)] for value in eighths + others]


def test_it_starts_with_published_values_and_an_address_left_alone(site, visit) -> None:
    page = opened(site, visit)
    expect(page.locator("output")).to_contain_text("The ridge lies at 206.1 FLOP/B.")
    assert row(page, "MB") == ["136.31", "34.62", "2.10"]
    assert row(page, "bytes") == ["136,314,880", "34,619,392", "2,097,152"]
    assert row(page, "FLOP/B") == ["31.5", "124.1", "2,048.0"]
    assert row(page, "bound") == ["memory", "memory", "compute"]
    assert row(page, "TFLOP/s at most")[2] == "989.4"
    assert address(page) == ""
    assert visit.complaints == []


@pytest.mark.parametrize("device", DEVICES)
def test_every_device_shows_its_own_ridge(site, visit, device: str) -> None:
    page = opened(site, visit)
    field(page, "device").select_option(device)
    ridge = dtypes(device)["bf16"] / fact(device, "hbm_rate").value
    expect(page.locator("output")).to_contain_text(f"The ridge lies at {ridge:.1f} FLOP/B.")
    expect(page.locator(".explorer svg")).to_contain_text(f"ridge {ridge:.1f}")
    assert f"device={device}&" in address(page)


def test_a_shared_address_shows_its_choice_and_survives_a_reload(site, visit) -> None:
    page = opened(site, visit, "?device=B200&dtype=fp8&B=2&H=16&N=16384&d=64&Br=64")
    expected = {"device": "B200", "dtype": "fp8", "B": "2", "H": "16"}
    expected |= {"N": "16384", "d": "64", "Br": "64"}
    assert choice(page) == expected
    field(page, "N").fill("5000")
    page.reload()
    assert choice(page) == expected | {"N": "5000"}
    assert row(page, "bytes")[0] == f"{2 * 16 * naive_bytes(5000, 64, 1):,}"


def test_the_choice_survives_leaving_and_coming_back_twice(site, visit) -> None:
    page = opened(site, visit)
    page.evaluate("window.stayed = true")
    field(page, "d").fill("96")
    gone_and_back(page)
    gone_and_back(page)
    assert page.evaluate("window.stayed") is True
    assert page.locator(".explorer form").count() == 1
    assert choice(page)["d"] == "96"
    field(page, "Br").fill("64")
    assert "d=96&Br=64" in address(page)
    assert visit.complaints == []


def gone_and_back(page: Page) -> None:
    page.locator("article").get_by_role("link", name="hardware table").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Hardware")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Explorer")
    expect(page.locator(".explorer form")).to_be_visible()


def test_back_to_another_address_of_the_page_shows_that_one(site, visit) -> None:
    page = opened(site, visit, CAPTURED)
    page.evaluate("document.querySelector('.explorer form').dataset.old = ''")
    page.evaluate("location.hash = 'standard-shapes'")
    expect(page.locator("form[data-old]")).to_have_count(0)  # the theme has swapped the page
    page.evaluate("scrollTo(0, 0)")  # the form is there again when it comes near
    expect(page.locator(".explorer form")).to_be_visible()
    field(page, "N").fill("4096")
    assert page.evaluate("location.hash") == "#standard-shapes"
    page.go_back()
    expect(field(page, "N")).to_have_value("8192")
    assert row(page, "bytes")[2] == f"{8 * 32 * compulsory_bytes(8192, 128):,}"


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("?device=H300", "device came as “H300”; allowed is one of A100-40, A100-80, H100, H200"),
        ("?dtype=int8", "H200: dtype came as “int8”; allowed is one of bf16, fp16, fp8"),
        ("?device=A100-80&dtype=fp8", "A100-80: dtype came as “fp8”; allowed is one of bf16, fp16"),
        ("?N=0", "N came as “0”; allowed is a whole number from 1 to 1,048,576"),
        ("?N=1e9", "N came as “1e9”"),
        ("?N=", "N came empty"),
        ("?N=4096&N=8192", "N came 2 times; allowed is once"),
        ("?n=8192", "The address names “n”; the explorer knows device, dtype, B, H, N, d, Br."),
        ("?N=<img src=x onerror=alert(1)>", "N came as “<img src=x onerror=alert(1)>”"),
    ],
)
def test_a_bad_address_is_named_and_shown_as_at_the_start(
    site, visit, query: str, fault: str
) -> None:
    page = opened(site, visit, query)
    expect(page.locator(".explorer-notes")).to_contain_text(fault)
    assert choice(page)["N"] == "4096"
    assert choice(page)["dtype"] == "bf16"
    assert visit.complaints == []


def test_the_good_part_of_a_bad_address_counts(site, visit) -> None:
    page = opened(site, visit, "?device=B200&N=none&d=128")
    assert [choice(page)[name] for name in ("device", "N", "d")] == ["B200", "4096", "128"]
    expect(page.locator(".explorer-notes p")).to_have_count(1)


def test_a_search_word_in_the_address_is_no_fault(site, visit) -> None:
    page = opened(site, visit, "?h=roofline")
    expect(page.locator(".explorer-notes p")).to_have_count(0)


@pytest.mark.parametrize(
    ("name", "typed", "most"),
    [
        ("N", "0", "1,048,576"),
        ("N", "-4096", "1,048,576"),
        ("N", "many", "1,048,576"),
        ("N", "1e9", "1,048,576"),
        ("N", "1000000000", "1,048,576"),
        ("N", "4,096", "1,048,576"),
        ("d", "64.5", "1,024"),
        ("Br", "1025", "1,024"),
        ("B", "٣", "65,536"),
    ],
)
def test_bad_input_is_named_with_what_is_allowed(
    site, visit, name: str, typed: str, most: str
) -> None:
    page = opened(site, visit)
    before = row(page, "bytes"), address(page)
    field(page, name).fill(typed)
    fault = f"{name} came as “{typed}”; allowed is a whole number from 1 to {most}"
    expect(page.locator(".explorer-fault:not(:empty)")).to_contain_text(fault)
    expect(field(page, name)).to_have_attribute("aria-invalid", "true")
    described = field(page, name).get_attribute("aria-describedby")
    expect(page.locator(f"[id={described}]")).to_contain_text("Shown below: ")
    assert (row(page, "bytes"), address(page)) == before
    field(page, name).fill("100")
    expect(page.locator(".explorer-fault:not(:empty)")).to_have_count(0)
    assert f"{name}=100" in address(page)


def test_an_empty_field_is_named(site, visit) -> None:
    page = opened(site, visit)
    field(page, "H").fill("")
    expect(page.locator(".explorer-fault:not(:empty)")).to_contain_text("H came empty; allowed is")


def test_a_device_without_the_data_type_says_so_and_takes_another(site, visit) -> None:
    page = opened(site, visit, "?device=H200&dtype=fp8")
    field(page, "device").select_option("A100-80")
    expect(page.locator(".explorer-notes")).to_contain_text("A100-80: dtype came as “fp8”")
    assert choice(page)["dtype"] == "bf16"
    assert "device=A100-80&dtype=bf16" in address(page)


def test_a_tile_that_no_kernel_can_have_is_named(site, visit) -> None:
    page = opened(site, visit, "?d=128&Br=512")
    expect(page.locator("output")).not_to_contain_text("No kernel")
    field(page, "Br").fill("1024")
    expect(page.locator("output")).to_contain_text("take 512 KiB, and the registers of an SM hold")


def cells_of(table: Locator) -> list[list[str]]:
    return table.locator("tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
    )


def top(x: float) -> float:
    """FLOP/s that an H200 allows in bf16 at so many FLOP/B."""
    return attainable(x, dtypes("H200")["bf16"], fact("H200", "hbm_rate").value)


def test_captured_kernels_stand_in_table_and_drawing_with_their_origin(site, visit) -> None:
    page = opened(site, visit, CAPTURED)
    table = page.locator(".explorer-results table").nth(1)
    expect(table.get_by_role("rowheader", name="ours", exact=True)).to_be_visible()
    strong = page.locator(".explorer svg circle.captured:not(.faint)")
    assert strong.count() == table.locator("tbody tr").count() > 1
    points = [point for point in captured()[0]["points"] if point[1] == "bf16"]
    others = [p for p in points if p[0] == "ours" and p[2:6] != [8, 32, 8192, 128]]
    assert page.locator(".explorer svg circle.captured.faint").count() == len(others)
    here = {p[0]: p for p in points if p[2:6] == [8, 32, 8192, 128]}
    assert {cells[0]: cells[1:] for cells in cells_of(table)} == {
        name: [f"{tflops:,.1f}", f"{x:,.1f}", f"{tflops * 1e12 / top(x):.0%}".replace("%", " %")]
        for name, (*_, x, tflops) in here.items()
    }
    expect(page.locator(".explorer-origin")).to_contain_text("Captured on NVIDIA H200")
    field(page, "N").fill("8191")
    expect(page.locator(".explorer-results")).to_contain_text("Nothing was captured at this shape")
    field(page, "device").select_option("H100")
    expect(page.locator(".explorer-results")).to_contain_text("has been captured on this device")
    expect(page.locator(".explorer svg circle.captured")).to_have_count(0)


def test_a_shape_of_the_list_fills_the_form_and_a_typed_one_leaves_the_list(site, visit) -> None:
    page = opened(site, visit)
    shape = page.get_by_label("Shape: ")
    shape.select_option("8,32,8192,128")
    assert address(page) == CAPTURED
    assert [choice(page)[name] for name in "BHNd"] == ["8", "32", "8192", "128"]
    field(page, "N").fill("8000")
    assert shape.input_value() == ""
    page.get_by_role("button", name="Start again").click()
    assert address(page) == ""
    assert choice(page)["N"] == "4096"


def test_the_keyboard_alone_can_choose(site, visit) -> None:
    page = opened(site, visit)
    field(page, "device").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("16")
    page.keyboard.press("Enter")
    assert address(page).startswith("?device=B200&dtype=bf16&B=16&")


@pytest.mark.parametrize("visit", [PHONE], indirect=True)
def test_on_a_phone_all_fits_and_controls_are_large(site, visit) -> None:
    page = opened(site, visit, CAPTURED)
    boxes = page.locator(".explorer :is(button, select, input)").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect()).map(b => [b.height, b.right])"
    )
    assert min(height for height, _ in boxes) >= 44
    assert max(right for _, right in boxes) <= 390
    assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize("visit", [{"java_script_enabled": False}], indirect=True)
def test_without_javascript_a_table_stands_there_and_says_what_is_missing(site, visit) -> None:
    page = visit.open(site.url + PAGE)
    expect(page.locator(".explorer")).to_contain_text("With JavaScript, and served by a web server")
    expect(page.locator(".explorer form")).to_have_count(0)
    expect(page.get_by_role("row", name="16,384, 64 naive 2,155.87 31.9 memory")).to_be_visible()


def test_the_table_shows_what_the_form_computes(site, visit) -> None:
    page = opened(site, visit, "?N=16384&d=128")
    rows = page.locator("article table").last.get_by_role("row", name="16,384, 128")
    columns = {2: "MB", 3: "FLOP/B", 4: "bound", 5: "TFLOP/s at most"}
    texts = rows.evaluate_all("rows => rows.map(row => [...row.children].map(c => c.textContent))")
    assert [[text[at] for text in texts] for at in columns] == [
        row(page, name) for name in columns.values()
    ]


def test_print_has_results_and_no_form(site, visit) -> None:
    page = opened(site, visit, CAPTURED)
    page.emulate_media(media="print")
    expect(page.locator(".explorer form")).to_be_hidden()
    expect(page.locator("output")).to_contain_text("8 × 32 heads")
    expect(page.locator(".explorer svg")).to_be_visible()
    expect(page.locator(".explorer-results table").first).to_be_visible()
