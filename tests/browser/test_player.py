"""The player of tiles: what it shows is the lab's own run, and every reader can use it."""

import math
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from snippets.flash_attention import Step, walk
from snippets.full_attention import K, Q, V
from snippets.hbm_traffic import issued_bytes, naive_bytes
from snippets.online_softmax import empty, finish

pytestmark = pytest.mark.xdist_group("site")
PAGE = "lessons/flash_attention/"
HOWS = [(2, 2, False), (2, 2, True), (3, 3, False), (1, 4, False)]  # in the order of the choice
NAIVE = naive_bytes(4, 3)  # queries and keys have 4 columns, values and output 2: 3 on average
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}


def opened(site, visit) -> Page:
    page = visit.open(site.url + PAGE)
    return shown(page)


def shown(page: Page) -> Page:
    page.locator("#tile-walk").scroll_into_view_if_needed()
    expect(page.locator(".player-stage")).to_be_visible()
    return page


def slider(page: Page) -> Locator:
    return page.get_by_role("slider", name="Step")


def button(page: Page, name: str) -> Locator:
    return page.locator(".player-controls").get_by_role("button", name=name)


def choose(page: Page, index: int) -> None:
    page.get_by_label("Tiles of").select_option(index=index)


def what_is_shown(page: Page) -> dict[str, object]:
    """The step on the screen: table, what lives in registers and where, tiles, output, bytes."""
    return page.evaluate("""() => {
      const all = selector => [...document.querySelectorAll(selector)]
      const texts = row => [...row.children].map(cell => cell.textContent)
      return {
        place: document.querySelector(".player-says strong").textContent,
        table: Object.fromEntries(all(".player-state tr").map(texts).map(
          ([name, ...values]) => [name, values])),
        live: all(".player-cell.live").map(cell => [cell.textContent, cell.style.gridArea]),
        chip: all(".player-cell.on-chip").map(cell => cell.textContent),
        written: all(".player-cell.written").map(cell => cell.textContent),
        bytes: all(".player-bar-label").map(label => label.textContent),
      }
    }""")


def walked(page: Page, index: int) -> list[dict[str, object]]:
    """Every step of one choice, from the first on, by the button."""
    choose(page, index)
    found = [what_is_shown(page)]
    while button(page, "Next").get_attribute("aria-disabled") == "false":
        button(page, "Next").click()
        found.append(what_is_shown(page))
    return found


def short(value: float) -> str:
    text = f"{value:.3f}".removesuffix(".000").replace("-", "−")
    return text.replace("inf", "∞")


def expected(how: tuple[int, int, bool]) -> list[dict[str, object]]:
    """What the steps must show, from the lab."""
    steps = list(walk(Q, K, V, *how))
    ends = [step.keys.stop == len(K) for step in steps]
    moved, found, before, written = 0, [], [], []
    for number, (step, end) in enumerate(zip(steps, ends, strict=True), 1):
        new = step.keys.start == 0
        before = [empty(2)] * len(step.queries) if new else before
        # elements of Q once, of K and V each time, of O at the end, two bytes each, and the LSE
        moved += new * len(step.queries) * 8 + len(step.keys) * 12 + end * len(step.queries) * 8
        written += [f"o{i}" for i in step.queries if end]
        found.append(
            {
                "place": f"Step {number} of {len(steps)}.",
                "table": table(step, before, end),
                "live": [cell for row in live(step, end) for cell in row],
                "written": list(written),
                "chip": [
                    *(f"{name}{j}" for j in step.keys for name in "kv"),
                    *(f"q{i}" for i in step.queries),
                ],
                "bytes": [
                    f"Tiles: {moved} B so far, {issued_bytes(4, 3, how[0])} B at the end",
                    f"Naive attention: {NAIVE} B",
                ],
            }
        )
        before = step.states
    return found


def live(step: Step, end: bool) -> list[list[list[str]]]:
    """Text and grid place of what a step keeps in registers, a list for each query."""
    return [
        [
            *(
                [short(score), f"{i + 3} / {j + 2}"]
                for j, score in zip(step.keys, scores, strict=True)
            ),
            *([] if end else [[f"acc{i}", f"{i + 3} / {len(K) + 2}"]]),
        ]
        for i, scores in zip(step.queries, step.scores, strict=True)
    ]


def table(step: Step, before: list, end: bool) -> dict[str, list[str]]:
    def columns(values: tuple[float, ...]) -> str:
        return " ".join(f"{value:.3f}" for value in values)

    factors = [
        "–" if old.m == -math.inf else f"{math.exp(old.m - new.m):.3f}"
        for old, new in zip(before, step.states, strict=True)
    ]
    done = [finish(state) for state in step.states]
    return {
        "State": [f"query {i}" for i in step.queries],
        "scores": [" ".join(map(short, row)) for row in step.scores],
        "m before": [short(state.m) for state in before],
        "m after": [short(state.m) for state in step.states],
        "factor": factors,
        "l before": [f"{state.l:.3f}" for state in before],
        "l after": [f"{state.l:.3f}" for state in step.states],
        "acc before": [columns(state.acc) for state in before],
        "acc after": [columns(state.acc) for state in step.states],
        "O = acc / l": [columns(out) if end else "–" for out, _ in done],
        "LSE": [short(lse) if end else "–" for _, lse in done],
    }


@pytest.mark.parametrize(("index", "how"), list(enumerate(HOWS)), ids=str)
def test_every_step_shows_what_the_lab_computes(site, visit, index: int, how) -> None:
    page = opened(site, visit)
    assert walked(page, index) == expected(how)
    assert visit.complaints == []


def pressed(page: Page, key: str) -> object:
    page.keyboard.press(key)
    return what_is_shown(page)["place"]


def focused_by_tab(page: Page) -> str:
    page.keyboard.press("Tab")
    return page.evaluate("document.activeElement.textContent || document.activeElement.type")


def gone_and_back(page: Page) -> None:
    page.get_by_role("link", name="Next lesson: ").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Online softmax")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_contain_text("FlashAttention")
    shown(page)


def test_arrows_home_and_end_move_the_labelled_slider(site, visit) -> None:
    page = opened(site, visit)
    slider(page).focus()
    keys = ("End", "ArrowLeft", "Home", "ArrowRight", "ArrowUp", "ArrowDown", "ArrowRight")
    places = [pressed(page, key) for key in keys]
    assert places == [f"Step {n} of 4." for n in (4, 3, 1, 2, 3, 2, 3)]
    assert slider(page).get_attribute("aria-valuetext").startswith("Step 3 of 4: Queries 2–3 come")


def test_tab_reaches_every_control_and_space_plays(site, visit) -> None:
    page = opened(site, visit)
    page.get_by_label("Tiles of").focus()
    assert [focused_by_tab(page) for _ in range(4)] == ["Back", "Play", "Next", "range"]
    button(page, "Play").focus()
    page.keyboard.press("Space")
    expect(button(page, "Pause")).to_be_focused()


def test_play_steps_on_pauses_and_starts_again_at_the_end(site, visit) -> None:
    visit.page.clock.install()
    page = opened(site, visit)
    button(page, "Play").click()
    page.clock.run_for(2600)
    assert what_is_shown(page)["place"] == "Step 2 of 4."
    button(page, "Pause").click()
    page.clock.run_for(10_000)
    assert what_is_shown(page)["place"] == "Step 2 of 4."
    button(page, "Play").click()
    page.clock.run_for(10_000)
    assert what_is_shown(page)["place"] == "Step 4 of 4."
    expect(button(page, "Play")).to_be_visible()
    button(page, "Play").click()
    assert what_is_shown(page)["place"] == "Step 1 of 4."


@pytest.mark.parametrize("act", ["Next", "End"])
def test_a_step_by_hand_ends_the_playing(site, visit, act: str) -> None:
    visit.page.clock.install()
    page = opened(site, visit)
    button(page, "Play").click()
    {"Next": button(page, "Next").click, "End": lambda: slider(page).press("End")}[act]()
    place = what_is_shown(page)["place"]
    page.clock.run_for(10_000)
    assert what_is_shown(page)["place"] == place
    expect(button(page, "Play")).to_be_visible()


def test_the_words_are_announced_by_hand_and_not_while_it_plays(site, visit) -> None:
    page = opened(site, visit)
    expect(page.locator(".player-says")).to_have_attribute("aria-live", "polite")
    button(page, "Play").click()
    expect(page.locator(".player-says")).to_have_attribute("aria-live", "off")


@pytest.mark.parametrize(
    ("visit", "moves"),
    [({"reduced_motion": "reduce"}, False), ({"reduced_motion": "no-preference"}, True)],
    indirect=["visit"],
)
def test_nothing_fades_for_a_reader_who_wants_less_motion(site, visit, moves: bool) -> None:
    page = opened(site, visit)
    button(page, "Next").click()
    name = page.locator(".player-cell.live").first.evaluate(
        "e => getComputedStyle(e).animationName"
    )
    assert (name != "none") is moves


@pytest.mark.parametrize("visit", [PHONE], indirect=True)
def test_on_a_phone_all_fits_and_buttons_are_large(site, visit) -> None:
    page = opened(site, visit)
    choose(page, 2)  # three queries, the widest
    boxes = page.locator(".player-controls :is(button, select, input)").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect()).map(b => [b.width, b.height, b.right])"
    )
    assert min(width for width, _, _ in boxes) >= 44
    assert min(height for _, height, _ in boxes) >= 44
    assert max(right for _, _, right in boxes) <= 390
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator(".player-state").evaluate("e => e.scrollWidth - e.clientWidth") == 0


def test_there_is_one_player_after_leaving_and_coming_back_twice(site, visit) -> None:
    page = opened(site, visit)
    page.evaluate("window.stayed = true")
    button(page, "Play").click()
    gone_and_back(page)
    gone_and_back(page)
    assert page.evaluate("window.stayed") is True
    assert page.locator(".player-stage").count() == 1
    button(page, "Next").click()
    assert what_is_shown(page)["place"] == "Step 2 of 4."
    assert page.locator(".player-stage").evaluate("e => getComputedStyle(e).display") == "block"
    assert visit.complaints == []


@pytest.mark.parametrize("visit", [{"java_script_enabled": False}], indirect=True)
def test_without_javascript_the_drawing_and_every_step_stand_there(site, visit) -> None:
    page = visit.open(site.url + PAGE)
    expect(page.locator("#tile-walk > svg")).to_be_visible()
    expect(page.locator(".player-stage")).to_have_count(0)
    rows = page.locator("#tile-walk tbody tr")
    per_step = [len(step["table"]["State"]) for how in HOWS for step in expected(how)]
    expect(rows).to_have_count(sum(per_step))
    expect(rows.last).to_be_visible()


def test_the_table_is_complete(site, visit) -> None:
    page = visit.open(site.url + PAGE)
    texts = page.locator("#tile-walk tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
    )
    assert texts == [row for how in HOWS for row in rows_of(how)]


def rows_of(how: tuple[int, int, bool]) -> list[list[str]]:
    rows = []
    for number, (step, lab) in enumerate(zip(expected(how), walk(Q, K, V, *how), strict=True), 1):
        cells = step["table"]
        where = " × ".join(
            f"{r[0]}–{r[-1]}" if len(r) > 1 else f"{r[0]}" for r in (lab.queries, lab.keys)
        )
        moved = re.search(r"\d+", step["bytes"][0])[0]
        for at, query in enumerate(cells["State"]):
            both = {
                x: f"{cells[f'{x} before'][at]} → {cells[f'{x} after'][at]}"
                for x in ("m", "l", "acc")
            }
            start = [str(number), where, query.removeprefix("query "), cells["scores"][at]]
            middle = [both["m"], cells["factor"][at], both["l"], both["acc"]]
            rows.append([*start, *middle, cells["O = acc / l"][at], cells["LSE"][at], moved])
    return rows


def test_print_has_the_drawing_and_the_tables_and_no_control(site, visit) -> None:
    page = opened(site, visit)
    expect(page.locator("#tile-walk > svg")).to_be_hidden()
    page.emulate_media(media="print")
    expect(page.locator(".player-stage")).to_be_hidden()
    expect(page.locator("#tile-walk > svg")).to_be_visible()
    expect(page.locator("#tile-walk tbody tr").last).to_be_visible()
    right = "all => Math.max(...all.map(e => e.getBoundingClientRect().right))"
    page.set_viewport_size({"width": 680, "height": 900})  # A4 with its margins
    assert page.locator("#tile-walk tbody td").evaluate_all(right) <= 680


def test_the_player_is_not_loaded_before_the_reader_is_near(site, visit) -> None:
    page = visit.open(site.url + PAGE)
    loaded = (
        "performance.getEntriesByType('resource').map(entry => entry.name.split('/').at(-1))"
        ".filter(name => name.startsWith('player')).sort()"
    )
    assert page.evaluate(loaded) == []
    shown(page)
    assert page.evaluate(loaded) == ["player.css", "player.js"]
