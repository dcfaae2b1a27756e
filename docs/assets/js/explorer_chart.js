/* The explorer's roofline as SVG, in the look of the figures made at build. */

import { fixed, short } from "./explorer_format.js"

const [LEFT, RIGHT, TOP, BOTTOM] = [48, 430, 30, 300]
const X = [0.1, 2e6] // FLOP/B
const Y = [0.1, 1e4] // TFLOP/s
// where the name of a count stands beside its point; they may all lie close together
const BESIDE = {
  "naive": [8, 14, "start"],
  "tile-issued": [-8, -6, "end"],
  "compulsory": [0, -28, "middle"]
}

function node(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...children)
  return element
}

function along([low, high], start, end, value) {
  const share = Math.log10(value / low) / Math.log10(high / low)
  return (start + (end - start) * share).toFixed(1)
}

const across = flopPerByte => along(X, LEFT, RIGHT, flopPerByte)
const up = tflops => along(Y, BOTTOM, TOP, tflops)
const line = (x1, y1, x2, y2, kind = "line") => node("line", { x1, y1, x2, y2, class: kind })
const text = (x, y, words, anchor = "start", kind = "ink") =>
  node("text", { x, y, "text-anchor": anchor, class: kind }, words)
const dot = (x, y, r, kind, words) =>
  node("circle", { cx: x, cy: y, r, class: kind }, node("title", {}, words))

function axes() {
  const short = new Intl.NumberFormat("en", { notation: "compact" })
  const ticks = [line(LEFT, BOTTOM, RIGHT, BOTTOM), line(LEFT, BOTTOM, LEFT, TOP)]
  for (let power = -1; power <= 6; power++) {
    const x = across(10 ** power)
    ticks.push(line(x, BOTTOM, x, BOTTOM + 4))
    ticks.push(text(x, BOTTOM + 17, short.format(10 ** power), "middle", "soft"))
  }
  for (let power = -1; power <= 4; power++) {
    const y = up(10 ** power)
    ticks.push(line(LEFT - 4, y, LEFT, y))
    ticks.push(text(LEFT - 7, Number(y) + 4, short.format(10 ** power), "end", "soft"))
  }
  ticks.push(text(RIGHT, BOTTOM + 34, "FLOP for each byte", "end", "soft"))
  ticks.push(text(6, 14, "TFLOP/s", "start", "soft"))
  return ticks
}

function roofs({ rate, peak, ridge, dtype }) {
  const [slope, flat] = [rate / 1e12, peak / 1e12]
  const low = Math.max(X[0], Y[0] / slope)
  const [x, y] = [across(ridge), up(flat)]
  return [
    line(LEFT, y, x, y, "line thin dashed faint"),
    line(x, y, RIGHT, y),
    line(x, y, x, BOTTOM, "line thin dashed"),
    line(across(low), up(low * slope), x, y, "stroke-hbm"),
    text(LEFT + 4, Number(y) - 5, `${dtype} ${flat.toLocaleString("en")}`),
    text(Number(across(1)) + 9, Number(up(slope)) + 5, `HBM ${slope} TB/s`),
    text(Number(x) + 5, BOTTOM - 6, `ridge ${fixed(ridge, 1)}`)
  ]
}

function named({ name, intensity, attainable, bound }) {
  const [x, y] = [across(intensity), up(attainable / 1e12)].map(Number)
  const [dx, dy, anchor] = BESIDE[name]
  const kind = bound === "memory-bound" ? "lvl-hbm" : "ink"
  // near the right end a name in the middle would leave the drawing
  const beyond = anchor === "middle" && x > RIGHT - 40
  const parts = [
    dot(x, y, 4.5, kind, `${name}: ${short(intensity)} FLOP/B`),
    text(beyond ? RIGHT : x + dx, y + dy, name, beyond ? "end" : anchor)
  ]
  return dy < -20 ? [line(x, y, x, y + dy + 4, "line thin"), ...parts] : parts
}

/* `captured` are points {name, intensity, tflops, here}; `here` marks those of the chosen shape. */
export function chart(choice, captured) {
  const title = `Roofline of one ${choice.device}, ${choice.dtype}`
  const words = captured.length
    ? " Rings are captured kernels, the strong ones of the chosen shape."
    : ""
  return node("svg",
    { viewBox: "0 0 440 340", role: "img", "aria-labelledby": "explorer-title explorer-desc" },
    node("title", { id: "explorer-title" }, title),
    node("desc", { id: "explorer-desc" }, "Both axes are logarithmic. A slope for HBM meets a flat "
      + "roof for the arithmetic at the ridge. Naive, tile-issued and compulsory counts of the same "
      + `attention are points under them; the table holds their values.${words}`),
    ...axes(),
    ...roofs(choice),
    ...captured.toSorted((a, b) => a.here - b.here).map(({ name, intensity, tflops, here }) => dot(
      across(intensity), up(tflops), here ? 4 : 2.5, here ? "captured" : "captured faint",
      `${name}, captured: ${short(tflops)} TFLOP/s`)),
    ...choice.counts.flatMap(named))
}
