/* The reader's progress where it is shown: at the lesson, on its card and in the navigation. */

import { LABELS, read } from "./record.js"

export function lessonOf(link) {
  return new URL(link.href).pathname.match(/\/lessons\/(\w+)(?:\/|\.html)$/)?.[1]
}

function mark(entry, state) {
  const sign = entry.querySelector(".progress-mark") ?? document.createElement("span")
  sign.className = "progress-mark"
  sign.dataset.state = state
  sign.title = LABELS[state]
  sign.ariaLabel = LABELS[state]
  sign.role = "img"
  entry.append(sign)
}

/* Bring every control, card and entry of the navigation into line with the record. */
export function show() {
  const states = read()
  const of = lesson => states[lesson] ?? "none"
  for (const control of document.querySelectorAll("fieldset.progress")) {
    const state = of(control.dataset.lesson)
    for (const choice of control.elements) choice.checked = choice.value === state
  }
  for (const line of document.querySelectorAll(".card-progress")) {
    line.dataset.state = of(line.dataset.lesson)
    line.textContent = LABELS[line.dataset.state]
  }
  for (const link of document.querySelectorAll(".md-nav--primary a")) {
    const lesson = lessonOf(link)
    if (!lesson) continue
    // beside the link to the open page stands a label, which a phone shows in its place
    for (const entry of [link, link.parentElement.querySelector(":scope > label")]) {
      if (entry) mark(entry, of(lesson))
    }
  }
}
