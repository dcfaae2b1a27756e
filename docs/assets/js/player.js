/* Steps through the trace of tiled attention. All numbers and sentences come with the page, made
   from the lab's own run; this only shows one step after the other. */

import { make } from "./make.js"

const PACE_MS = 2500
const LEGEND = {
  "lvl-shared": "on the chip, in shared memory",
  "lvl-registers": "a live score or sum, in registers",
  "lvl-hbm": "in HBM; pale: waits there, or is left there"
}

/* The grid of scores with Q on the left, K and V above and O on the right: it repeats in colour
   what the sentence and the table say, so a screen reader is spared it. */
function drawMap(map, walk, step) {
  const cell = (text, kind, row, column) => {
    const element = make("span", { className: `player-cell ${kind}`, textContent: text })
    element.style.gridArea = `${row} / ${column}`
    return element
  }
  const keys = [...new Set(walk.steps.flatMap(({ keys }) => keys))]
  const queries = [...new Set(walk.steps.flatMap(({ queries }) => queries))]
  const place = on => (on ? "on-chip" : "in-hbm")
  const cells = []
  for (const j of keys) {
    cells.push(cell(`k${j}`, place(step.keys.includes(j)), 1, j + 2))
    cells.push(cell(`v${j}`, place(step.keys.includes(j)), 2, j + 2))
  }
  for (const i of queries) {
    const row = step.queries.indexOf(i)
    cells.push(cell(`q${i}`, place(row >= 0), i + 3, 1))
    for (const j of keys) {
      const score = step.scores[row]?.[step.keys.indexOf(j)]
      cells.push(cell(score ?? "", score === undefined ? "no-score" : "live", i + 3, j + 2))
    }
    const written = walk.steps.some(
      past => past.done && past.moved <= step.moved && past.queries.includes(i))
    const output = written ? "written" : row >= 0 ? "live" : "no-score"
    cells.push(cell(row >= 0 && !written ? `acc${i}` : `o${i}`, output, i + 3, keys.length + 2))
  }
  map.replaceChildren(...cells)
}

function drawState(table, step) {
  const head = step.queries.map(i => make("th", { scope: "col", textContent: `query ${i}` }))
  const rows = Object.keys(step.rows[0]).map(name => make("tr", {},
    make("th", { scope: "row", textContent: name }),
    ...step.rows.map(row => make("td", { textContent: row[name] }))))
  table.replaceChildren(
    make("thead", {}, make("tr", {}, make("th", { scope: "col", textContent: "State" }), ...head)),
    make("tbody", {}, ...rows))
}

function bar(label, count, rest, most) {
  const fill = make("span", { className: "player-fill" })
  fill.style.setProperty("--part", `calc(100% * ${count} / ${most})`)
  const outline = make("span", { className: "player-rest" })
  outline.style.setProperty("--part", `calc(100% * ${rest} / ${most})`)
  return make("div", { className: "player-bar" },
    make("span", { className: "player-bar-label", textContent: label }),
    make("span", { className: "player-track", ariaHidden: "true" }, outline, fill))
}

function drawBytes(bytes, walk, step) {
  bytes.replaceChildren(
    bar(`Tiles: ${step.moved} B so far, ${walk.total} B at the end`,
      step.moved, walk.total, walk.most),
    bar(`Naive attention: ${walk.naive} B`, walk.naive, walk.naive, walk.most))
}

export function mount(figure) {
  const walks = JSON.parse(figure.dataset.walks)
  let walk = walks[0]
  let timer

  const button = (text, act) =>
    make("button", { type: "button", className: "player-button", textContent: text, onclick: act })
  const choice = make("select", { onchange: choose }, ...walks.map(
    ({ name }, value) => make("option", { value, textContent: name })))
  const slider = make("input", { type: "range", min: 1, max: 1, value: 1, oninput: pauseAndShow })
  const play = button("Play", () => (timer ? pause() : start()))
  const back = button("Back", () => go(-1))
  const next = button("Next", () => go(1))
  const says = make("p", { className: "player-says" })
  const map = make("div", { className: "player-map", ariaHidden: "true" })
  const state = make("table", { className: "player-state" })
  const bytes = make("div", { className: "player-bytes" })
  const legend = make("p", { className: "player-legend" }, ...Object.entries(LEGEND).map(
    ([className, textContent]) => make("span", { className, textContent })))

  function show() {
    const step = walk.steps[slider.valueAsNumber - 1]
    const where = `Step ${slider.value} of ${walk.steps.length}`
    slider.ariaValueText = `${where}: ${step.says}`
    says.replaceChildren(make("strong", { textContent: `${where}.` }), ` ${step.says}`)
    back.ariaDisabled = String(slider.value === slider.min)
    next.ariaDisabled = String(slider.value === slider.max)
    drawMap(map, walk, step)
    drawState(state, step)
    drawBytes(bytes, walk, step)
  }

  function pause() {
    clearInterval(timer)
    timer = undefined
    play.textContent = "Play"
    says.ariaLive = "polite"
  }

  function pauseAndShow() {
    pause()
    show()
  }

  function go(by) {
    slider.valueAsNumber += by // the slider keeps it within its ends
    pauseAndShow()
  }

  function start() {
    if (slider.value === slider.max) slider.value = slider.min
    show()
    play.textContent = "Pause"
    says.ariaLive = "off" // each step would cut short the words of the one before
    timer = setInterval(() => {
      if (!figure.isConnected || slider.value === slider.max) return pause()
      slider.stepUp()
      show()
    }, PACE_MS)
  }

  function choose() {
    walk = walks[choice.selectedIndex]
    slider.max = walk.steps.length
    slider.value = slider.min
    pauseAndShow()
  }

  figure.prepend(make("div", { className: "player-stage" },
    make("div", { className: "player-controls", role: "group", ariaLabel: "Player of the tiles" },
      make("label", { className: "player-choice" }, "Tiles of ", choice),
      back, play, next,
      make("label", { className: "player-slider" }, "Step ", slider)),
    says,
    make("div", { className: "player-scene" }, make("div", {}, map, legend), state),
    bytes))
  figure.classList.add("player-live")
  figure.querySelector(".player-steps").open = false
  choose()
}
