/* The explorer: a form, the address that holds its choice, and what follows from it. */

import { chart } from "./explorer_chart.js"
import { explore } from "./explorer_model.js"
import { capturedBlock, countsTable, summary, tileWarning } from "./explorer_results.js"
import { SIZES, dtype as checkDtype, read, size, write } from "./explorer_state.js"
import { make } from "./make.js"

const LABELS = {
  B: "Batch, B",
  H: "Heads, H",
  N: "Queries and keys, N",
  d: "Head dimension, d",
  Br: "Query tile, Br"
}
const SHAPE = ["B", "H", "N", "d"]

const options = values => values.map(value => make("option", { value, textContent: value }))
const label = (words, control, ...more) => make("div", { className: "explorer-field" },
  make("label", { htmlFor: control.id, textContent: words }), control, ...more)

/* All that follows from a choice: the device's figures, the counts, the captured points. */
function derive(state, data) {
  const { rate, peaks, registers } = data.devices[state.device]
  const device = { rate, registers, peak: peaks[state.dtype], itemsize: data.itemsize[state.dtype] }
  const results = data.captured.filter(result => result.device === state.device)
  const captured = results.flatMap(({ points }) => points)
    .filter(([, dtype]) => dtype === state.dtype)
    .map(([name, , B, H, N, d, intensity, tflops]) => {
      const shape = { B, H, N, d }
      return { name, intensity, tflops, here: SHAPE.every(key => shape[key] === state[key]) }
    })
    .filter(({ name, here }) => here || name === "ours") // of other shapes ours alone is enough
  return {
    choice: { ...state, ...device, ...explore({ ...state, ...device }) },
    captured,
    results
  }
}

function shapes(data) {
  const captured = data.captured.flatMap(({ points }) => points.map(point => point.slice(2, 6)))
  const unique = [...new Map(captured.map(shape => [String(shape), shape])).values()]
  const group = (name, all) => make("optgroup", { label: name }, ...all.map(shape => make("option", {
    value: String(shape),
    textContent: `${shape[0]} × ${shape[1]} heads, N = ${shape[2].toLocaleString("en")}, d = ${shape[3]}`
  })))
  const own = make("option", { value: "", textContent: "as typed below" })
  return [own, group("Standard", data.presets), ...(unique.length ? [group("Captured", unique)] : [])]
}

export function mount(element) {
  const data = JSON.parse(element.dataset.explorer)
  let state

  const device = make("select", { id: "explorer-device" }, ...options(Object.keys(data.devices)))
  const dtype = make("select", { id: "explorer-dtype" })
  const shape = make("select", { id: "explorer-shape" }, ...shapes(data))
  const sizes = Object.fromEntries(SIZES.map(name => {
    const id = `explorer-${name}`
    const fault = make("p", { id: `${id}-fault`, className: "explorer-fault" })
    const input = make("input", { id, inputMode: "numeric", autocomplete: "off", maxLength: 60 })
    input.setAttribute("aria-describedby", fault.id)
    return [name, { input, fault }]
  }))
  const notes = make("div", { className: "explorer-notes", role: "status" })
  const said = make("output")
  const figure = make("figure", { className: "figure" })
  const results = make("div", { className: "explorer-results" })

  function tell(faults) {
    notes.replaceChildren(...faults.map(textContent => make("p", { textContent })))
  }

  function show() {
    const { choice, captured, results: found } = derive(state, data)
    said.textContent = `${summary(choice)} ${tileWarning(choice)}`
    figure.replaceChildren(chart(choice, captured))
    results.replaceChildren(countsTable(choice), ...capturedBlock(choice, captured, found))
  }

  function setFault(name, fault = "") {
    sizes[name].fault.textContent = fault && `${fault} Shown below: ${state[name]}.`
    sizes[name].input.setAttribute("aria-invalid", String(fault !== ""))
  }

  function fill() {
    device.value = state.device
    dtype.replaceChildren(...options(Object.keys(data.devices[state.device].peaks)))
    dtype.value = state.dtype
    for (const name of SIZES) {
      sizes[name].input.value = state[name]
      setFault(name)
    }
    markShape()
  }

  function markShape() {
    shape.value = String(SHAPE.map(name => state[name]))
    if (shape.selectedIndex < 0) shape.value = ""
  }

  function change(part) {
    state = { ...state, ...part }
    history.replaceState(history.state, "", write(state) + location.hash)
    show()
  }

  function load() {
    const found = read(location.search, data)
    state = found.state
    tell(found.faults)
    fill()
    show()
  }

  device.oninput = () => {
    const found = checkDtype(state.dtype, device.value, data)
    const part = found.fault ? { dtype: data.start.dtype } : {}
    tell(found.fault ? [`${found.fault} Shown instead: ${part.dtype}.`] : [])
    change({ device: device.value, ...part })
    fill()
  }
  dtype.oninput = () => {
    tell([])
    change({ dtype: dtype.value })
  }
  shape.oninput = () => {
    if (!shape.value) return
    const values = shape.value.split(",").map(Number)
    tell([])
    change(Object.fromEntries(SHAPE.map((name, index) => [name, values[index]])))
    fill()
  }
  for (const [name, { input }] of Object.entries(sizes)) {
    input.oninput = () => {
      const { value, fault } = size(name, input.value, data)
      setFault(name, fault)
      if (fault) return
      change({ [name]: value })
      markShape()
    }
  }
  const shapeField = label("Shape: B × H, N, d", shape)
  shapeField.classList.add("explorer-shape")
  const again = make("button", { type: "button", textContent: "Start again" })
  again.onclick = () => {
    history.replaceState(history.state, "", location.pathname + location.hash)
    load()
  }

  // another address of this page, for example after Back, does not load the page anew
  const path = location.pathname
  const move = () => {
    if (!element.isConnected) removeEventListener("popstate", move)
    else if (location.pathname === path) load()
  }
  addEventListener("popstate", move)

  element.replaceChildren(
    make("form", { className: "explorer-form", onsubmit: event => event.preventDefault() },
      label("Device", device), label("Data type", dtype), shapeField,
      ...SIZES.map(name => label(LABELS[name], sizes[name].input, sizes[name].fault)), again),
    notes, make("p", {}, said), figure, results)
  load()
}
