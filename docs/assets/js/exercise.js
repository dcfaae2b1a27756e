/* Answer an exercise in the page. The start, made from the tested solution, becomes a text to edit;
   Check runs the cases of the exercise's own file on it, in the browser's Python. Statement, hints
   and solution stay as the page has them. */

import { keep, kept } from "./answers.js"
import { onceLoaded } from "./first-load.js"

const EXERCISES = new URL("../exercises/", import.meta.url)
const LIMIT_MS = 10_000
let engine // of the page, made by the first check
let checking // { exercise, halt } while a check is in progress

function make(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties)
  element.append(...children)
  return element
}

/** Start a line as deep as the one above, and one step deeper after a colon. */
function indent(event) {
  const { value, selectionStart } = event.target
  const line = value.slice(value.lastIndexOf("\n", selectionStart - 1) + 1, selectionStart)
  const depth = line.match(/^ */)[0].length + (line.trimEnd().endsWith(":") ? 4 : 0)
  document.execCommand("insertText", false, `\n${" ".repeat(depth)}`) // which can be undone
}

class Exercise {
  constructor(element) {
    this.element = element
    this.stem = element.dataset.exercise
    this.start = element.querySelector("pre > code").textContent
    this.build()
    this.write(kept(this.stem) ?? this.start)
    const first = `The first Check loads Python, ${element.dataset.python}.`
    this.say(this.answer.value === this.start ? first
      : "Your answer as you left it; it is kept in this browser only.")
    onceLoaded(() => this.status.textContent === first && this.say("Not checked yet."))
  }

  build() {
    const button = (textContent, act) => {
      const made = make("button", { type: "button", textContent, className: "exercise-button" })
      made.addEventListener("click", () => act.call(this))
      return made
    }
    this.buttons = {
      check: button("Check", this.check),
      stop: button("Stop", this.stop),
      reset: button("Reset", this.reset)
    }
    this.answer = make("textarea", {
      id: `answer-${this.stem}`, className: "exercise-answer", wrap: "off",
      spellcheck: false, autocapitalize: "off", autocomplete: "off"
    })
    this.answer.addEventListener("input", () => this.changed())
    this.answer.addEventListener("keydown", event => {
      if (event.key !== "Enter" || event.isComposing) return
      event.preventDefault()
      if (event.ctrlKey || event.metaKey) this.check()
      else indent(event)
    })
    const label = make("label", {
      htmlFor: this.answer.id, textContent: "Your answer (Ctrl+Enter checks it)"
    })
    this.status = make("p", { className: "exercise-status" })
    this.detail = make("pre", { className: "exercise-detail" })
    this.verdict = make("div", {}, this.status, this.detail)
    this.verdict.setAttribute("role", "status")
    const bar = make("div", { className: "exercise-bar" }, ...Object.values(this.buttons))
    this.element.querySelector(".exercise-off").before(label, this.answer, bar, this.verdict)
    this.element.classList.add("exercise-live")
  }

  write(text) {
    this.answer.value = text
    this.answer.rows = Math.min(24, Math.max(8, text.split("\n").length + 1))
  }

  /** Say what is the case; `kind` is right, wrong or open. */
  say(message, kind = "open", detail = "") {
    if (this.status.textContent !== message) this.status.textContent = message
    this.detail.textContent = detail
    this.detail.hidden = !detail
    this.verdict.className = `exercise-verdict exercise-${kind}`
    this.showButtons()
  }

  showButtons() {
    const { check, stop, reset } = this.buttons
    const focused = document.activeElement
    const busy = checking?.exercise === this
    check.setAttribute("aria-disabled", busy)
    stop.hidden = !busy
    reset.hidden = busy || this.answer.value === this.start
    if (focused?.hidden && this.element.contains(focused)) check.focus()
  }

  changed() {
    const { value } = this.answer
    const stored = keep(this.stem, value === this.start ? null : value)
    if (!stored) this.say("This browser does not keep your answer: copy it before you leave.")
    else if (this.verdict.classList.contains("exercise-right")) this.say("Not checked since then.")
    else this.showButtons() // what was wrong stays in sight while it is mended
  }

  reset() {
    keep(this.stem, null)
    this.write(this.start)
    this.say("As it began.")
  }

  stop() {
    checking.halt()
    engine?.stop()
  }

  async check() {
    if (checking?.exercise === this) return
    checking?.exercise.stop()
    const mine = checking = { exercise: this }
    const halted = new Promise(resolve => {
      mine.halt = () => resolve({ status: "stopped", message: "Stopped." })
    })
    let printed = ""
    this.say("Loading Python …")
    const result = await Promise.race([this.run(mine, text => (printed += text)), halted])
    if (checking === mine) checking = undefined
    this.conclude(result, printed.trimEnd())
  }

  async run(mine, onOutput) {
    let program
    try {
      const response = await fetch(new URL(`${this.stem}.json`, EXERCISES))
      program = await response.json()
      const { Engine } = await import("./engine.js")
      engine ??= new Engine({ limitMs: LIMIT_MS })
    } catch {
      return { status: "unavailable", message: "The check could not be loaded; try again." }
    }
    if (checking !== mine) return
    const files = { ...program.files, [program.answer]: this.answer.value }
    const onStart = () => this.say("Checking …")
    return engine.run({ files, module: program.module, onOutput, onStart })
  }

  conclude({ status, message }, printed) {
    const end = printed.lastIndexOf("Right: all ") // the check prints it last
    if (status === "done" && end >= 0) {
      this.say(printed.slice(end), "right", printed.slice(0, end).trimEnd())
    } else if (status === "error") {
      const [verdict, ...rest] = message.replace(/^SystemExit: /, "").split("\n\n")
      const also = printed ? ["It printed", printed] : []
      this.say(`Not yet. ${verdict}`, "wrong", [...rest, ...also].join("\n\n"))
    } else {
      const loop = status === "timeout" ? " Does a loop never end?" : ""
      const ended = message || "The check ended before it could judge."
      this.say(ended + loop, "wrong", printed.slice(-2000))
    }
  }
}

export function mount(element) {
  new Exercise(element)
}

// a page that is left takes its check with it; Python stays loaded for the next page
document$.subscribe(() =>
  checking?.exercise.element.isConnected === false && checking.exercise.stop())
