/* What the explorer says of one choice, in words and tables; the numbers come from its model. */

import { fixed, grouped, short } from "./explorer_format.js"
import { attainable } from "./explorer_model.js"
import { make } from "./make.js"

const kib = bytes => `${fixed(Number(bytes) / 1024, 0)} KiB`
const times = value => `${short(value)}×`

function table(caption, head, rows) {
  const cells = ([first, ...rest]) => [
    make("th", { scope: "row", textContent: first }),
    ...rest.map(textContent => make("td", { textContent }))
  ]
  const made = make("table", {},
    make("caption", { textContent: caption }),
    make("thead", {}, make("tr", {}, ...head.map(
      textContent => make("th", { scope: "col", textContent })))),
    make("tbody", {}, ...rows.map(row => make("tr", {}, ...cells(row)))))
  // where it is wider than the screen, the keyboard must be able to scroll it
  return make("div",
    { className: "explorer-scroll", role: "region", ariaLabel: caption, tabIndex: 0 }, made)
}

const roof = ({ bound }, dtype) => (bound === "memory-bound" ? "HBM" : `${dtype} peak`)

export function countsTable({ counts, dtype }) {
  const row = (name, show) => [name, ...counts.map(show)]
  return table("Three ways of counting its bytes", ["Bytes counted", ...counts.map(({ name }) => name)], [
    row("MB", ({ bytes }) => fixed(Number(bytes) / 1e6, 2)),
    row("bytes", ({ bytes }) => grouped(bytes)),
    row("fewer than naive", ({ fewer }) => times(fewer)),
    row("FLOP/B", count => short(count.intensity)),
    row("roof", count => roof(count, dtype)),
    row("bound", ({ bound }) => bound.replace("-bound", "")),
    row("TFLOP/s at most", count => short(count.attainable / 1e12)),
    row("us at least", ({ seconds }) => short(seconds * 1e6))
  ])
}

const NBSP = "\u00a0"
const named = (name, value) => `${name}${NBSP}=${NBSP}${grouped(value)}`

export function summary({ device, dtype, B, H, N, d, Br, flops, ridge }) {
  return `One ${device}, ${dtype}, ${grouped(B)} × ${grouped(H)} heads, ${named("N", N)}, ${
    named("d", d)}, query tiles of ${named("Br", Br)}: ${short(Number(flops) / 1e9)} GFLOP. `
    + `The ridge lies at ${fixed(ridge, 1)} FLOP/B.`
}

/* Say when no kernel could have the chosen tile, else nothing. */
export function tileWarning({ Br, d, outputTile, registers }) {
  if (outputTile <= registers) return ""
  return `No kernel can have this tile: the fp32 sums of O for ${grouped(Br)} queries at ${
    named("d", d)} take ${kib(outputTile)}, and the registers of an SM hold ${kib(registers)}.`
}

/* The captured kernels of the chosen shape, or a sentence that says what there is instead. */
export function capturedBlock({ dtype, peak, rate }, captured, results) {
  const here = captured.filter(point => point.here)
  if (!captured.length) {
    return [make("p", { textContent: `No kernel in ${dtype} has been captured on this device.` })]
  }
  const from = results.flatMap(({ mark, origin }) => [
    ...(mark ? [make("p", { className: "stale", textContent: mark })] : []),
    make("p", { className: "explorer-origin", textContent: origin })
  ])
  if (!here.length) {
    return [make("p", { textContent: "Nothing was captured at this shape; the faint "
      + `rings are the ${captured.length} other shapes of the project's own kernel. The list of `
      + "shapes in the form names them." }), ...from]
  }
  const rows = here.map(({ name, intensity, tflops }) => [
    name, short(tflops), short(intensity),
    `${fixed(100 * tflops * 1e12 / attainable(intensity, peak, rate), 0)} %`
  ])
  return [
    table("Captured at this shape", ["Kernel", "TFLOP/s", "FLOP/B", "of its roof"], rows),
    make("p", { textContent: "FLOP/B are those of the bytes that an implementation must move: "
      + "scores and weights count for those that write them." }),
    ...from
  ]
}
