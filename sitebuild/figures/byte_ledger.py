"""The byte ledger of naive attention: what each of its three kernels reads and writes."""

from sitebuild.svg import figure, polyline, rect, text
from snippets.naive_attention import ledger

N, D, ITEMSIZE = 4096, 64, 2
WIDTH_PER_MB = 4.6  # user units of bar for one MB
# what each kernel reads and writes, in the ledger's order: large matrices last
READS = (("Q", "K"), ("S",), ("V", "P"))
WRITES = (("S",), ("P",), ("O",))
READ_X, WRITE_X, PITCH = 6.0, 246.0, 104.0


def main() -> None:
    steps = ledger(N, N, D, ITEMSIZE)
    large, small = N * N * ITEMSIZE, N * D * ITEMSIZE
    body, rows = [], []
    ends = []  # where the bars of what the second and third kernel read end
    for index, (step, reads, writes) in enumerate(zip(steps, READS, WRITES, strict=True)):
        top = 8 + PITCH * index
        body.append(text(READ_X, top + 14, f"{index + 1}  {step.kernel}", classes="ink strong"))
        for x, verb, count, names in (
            (READ_X, "reads", step.read, reads),
            (WRITE_X, "writes", step.written, writes),
        ):
            sizes = [large if name in "SP" else small for name in names]
            if sum(sizes) != count:
                raise ValueError(f"{step.kernel} {verb} {count} B, drawn are {sum(sizes)} B")
            listed = ", ".join(names)
            body.append(text(x, top + 34, f"{verb} {listed}: {count / 1e6:.2f} MB", classes="soft"))
            for name, size in zip(names, sizes, strict=True):
                width = size / 1e6 * WIDTH_PER_MB
                body.append(rect(x, top + 42, width, 26, "lvl-hbm", f"{name}: {size / 1e6:.2f} MB"))
                if size == large:
                    body.append(
                        text(x + width / 2, top + 60, name, "middle", classes="on-level strong")
                    )
                x += width + 2
            if verb == "reads" and index:
                ends.append(x + 2)
            rows.append((step.kernel, verb, listed, f"{count / 1e6:.2f}"))
    for index, name in enumerate("SP"):
        # from the matrix written above to the same matrix read below
        out = 8 + PITCH * index + 70
        back = 8 + PITCH * (index + 1) + 55
        written_x, turn_x, read_x = WRITE_X + large / 2e6 * WIDTH_PER_MB, READ_X + 212, ends[index]
        path = [(written_x, out), (written_x, out + 10), (turn_x, out + 10), (turn_x, back)]
        body += [
            polyline([*path, (read_x, back)]),
            polyline([(read_x + 6, back - 4), (read_x, back), (read_x + 6, back + 4)]),
            text(written_x + 6, out + 13, f"{name} waits in HBM", classes="soft"),
        ]
    print(
        figure(
            "byte-ledger",
            "Bytes read and written by the three kernels of naive attention",
            "Three rows, one for each kernel, with a bar for what it reads and a bar for what it "
            "writes. S is written by the first kernel and read by the second, P is written by the "
            "second and read by the third. The bars of Q, K, V and O are slivers beside them.",
            8 + PITCH * 2 + 74,
            body,
            ("Kernel", "Does", "What", "MB"),
            rows,
            f"One head, N={N}, d={D}, bf16. Widths are true to bytes. S and P each make a round "
            "trip through HBM; Q, K, V and O are the slivers.",
        )
    )


if __name__ == "__main__":
    main()
