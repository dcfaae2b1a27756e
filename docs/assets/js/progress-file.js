/* The reader's progress as a file: save it, load it on another machine, or clear it. */

import { show } from "./progress.js"
import { LABELS, isKept, read, write } from "./record.js"

const FORMAT = "attention and GPU kernels, progress"
const LARGEST = 100_000

class BadFile extends Error {}

/* Return the states that a file holds for lessons of this course, and the names of the others. */
export function parse(text, lessons) {
  let data
  try {
    data = JSON.parse(text)
  } catch {
    throw new BadFile("it is not JSON")
  }
  if (data?.format !== FORMAT) throw new BadFile(`its format is not "${FORMAT}"`)
  if (data.version !== 1) throw new BadFile(`its version is ${data.version}; this page reads 1`)
  const states = data.states
  if (typeof states !== "object" || states === null || Array.isArray(states)) {
    throw new BadFile("its states are not an object")
  }
  for (const [lesson, state] of Object.entries(states)) {
    if (typeof state !== "string" || !Object.hasOwn(LABELS, state)) {
      throw new BadFile(
        `it gives ${lesson} the state ${JSON.stringify(state)}; allowed: ${Object.keys(LABELS).join(", ")}`
      )
    }
  }
  const entries = Object.entries(states)
  return {
    known: Object.fromEntries(entries.filter(([lesson]) => lessons.includes(lesson))),
    unknown: entries.map(([lesson]) => lesson).filter(lesson => !lessons.includes(lesson))
  }
}

async function load(file, lessons) {
  if (file.size > LARGEST) throw new BadFile(`it has ${file.size} bytes; at most ${LARGEST} are read`)
  const { known, unknown } = parse(await file.text(), lessons)
  write({ ...read(), ...known })
  show()
  const left = unknown.length ? ` Left out, since this course has no such lesson: ${unknown.join(", ")}.` : ""
  return `Lessons read from ${file.name}: ${Object.keys(known).length}.${left}`
}

function save() {
  const data = { format: FORMAT, version: 1, states: read() }
  const blob = new Blob([JSON.stringify(data, null, 2) + "\n"], { type: "application/json" })
  const link = document.createElement("a")
  link.href = URL.createObjectURL(blob)
  link.download = `progress-${new Date().toISOString().slice(0, 10)}.json`
  link.click()
  URL.revokeObjectURL(link.href)
  return `Saved as ${link.download}.`
}

export function mount(element) {
  const lessons = [...document.querySelectorAll(".card-progress")].map(line => line.dataset.lesson)
  element.innerHTML = `
    <p><strong>Your progress.</strong> It is kept in this browser only and changes when you set it,
      at the head or the foot of a lesson. Lessons in a file that you load replace those here.</p>
    <div class="buttons">
      <button type="button" class="button">Save to a file</button>
      <label class="button">Load from a file
        <input type="file" class="only-spoken" accept=".json,application/json"></label>
      <button type="button" class="button">Clear</button>
    </div>
    <p role="status"></p>`
  const [saving, clearing] = element.querySelectorAll("button")
  const picker = element.querySelector("input")
  const status = element.querySelector("[role=status]")
  const refused = "This browser refuses storage: your progress lasts until you leave the site."
  if (!isKept()) status.textContent = refused

  saving.addEventListener("click", () => { status.textContent = save() })
  clearing.addEventListener("click", () => {
    if (!confirm("Clear your progress in all lessons?")) return
    write({})
    show()
    status.textContent = "Cleared."
  })
  picker.addEventListener("change", async () => {
    const [file] = picker.files
    picker.value = "" // so that the same file can be chosen again
    if (!file) return
    try {
      status.textContent = await load(file, lessons)
    } catch (error) {
      status.textContent = error instanceof BadFile
        ? `${file.name} was not read: ${error.message}.`
        : "Not kept: this browser's storage is full."
    }
  })
}
