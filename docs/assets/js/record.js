/* Which lessons the reader has begun and finished. It is kept in this browser and nowhere else, and
   changes only when the reader says so. Every page loads this file and keeps a choice at once, since
   the reader may leave before anything else has come. */

export const KEY = `${__md_scope.pathname}.progress:v1`
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
