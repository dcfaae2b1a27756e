/* Which lessons the reader has begun and finished. It is kept in this browser and nowhere else, and
   changes only when the reader says so. */

const KEY = `${__md_scope.pathname}.progress:v1`
export const LABELS = { none: "Not started", begun: "In progress", done: "Done" }

// where the browser refuses storage, storage.html has put a stand-in that lasts as long as the page
export const isKept = () => localStorage instanceof Storage

/* The state of each lesson that has one; what is not such a record counts as none. */
export function read() {
  try {
    const stored = Object.entries(JSON.parse(localStorage.getItem(KEY)) ?? {})
    return Object.fromEntries(stored.filter(([, state]) => Object.hasOwn(LABELS, state)))
  } catch {
    return {}
  }
}

/* Replace the record; an empty one leaves nothing behind. */
export function write(states) {
  const begun = Object.entries(states).filter(([, state]) => state !== "none")
  if (begun.length) localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(begun)))
  else localStorage.removeItem(KEY)
  show()
}

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

/* The reader has chosen in a control. */
export function choose(choice) {
  const control = choice.closest("fieldset")
  const note = control.querySelector("[role=status]")
  try {
    write({ ...read(), [control.dataset.lesson]: choice.value })
    note.textContent = isKept() ? "" : "Not kept: this browser refuses storage."
  } catch {
    note.textContent = "Not kept: this browser's storage is full."
  }
}
