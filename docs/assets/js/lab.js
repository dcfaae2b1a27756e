/* Run and edit a lab under its code. The recorded output is what stands there at first; the code is
   the site's own file, fetched on the first Run or Edit, as is Python itself on the first Run. */

import { forget, keep, kept } from "./lab-edits.js"

const LABS = new URL("../labs/", import.meta.url)
const texts = new Map() // path: promise of the file's text; labs share most of their files
let engine // of the page, made by the first Run
let running // { lab, halted, halt } while a program runs

async function fetchText(path) {
  const response = await fetch(new URL(path, LABS))
  if (!response.ok) throw new Error(`${response.status} ${path}`)
  return response.text()
}

function text(path) {
  if (!texts.has(path)) {
    texts.set(path, fetchText(path))
    texts.get(path).catch(() => texts.delete(path)) // so that the next click tries again
  }
  return texts.get(path)
}

async function filesOf(stem) {
  const paths = JSON.parse(await text(`${stem}.json`))
  return Object.fromEntries(await Promise.all(paths.map(async path => [path, await text(path)])))
}

class Lab {
  constructor(element) {
    this.element = element
    this.stem = element.dataset.lab
    this.path = `snippets/${this.stem}.py`
    this.output = element.querySelector("pre > code")
    this.recorded = this.output.textContent
    this.edit = kept(this.stem) // { text, base, used }, or null
    this.build()
    this.begin = `Recorded when the site was built. The first Run loads Python, ${element.dataset.python}.`
    this.show(this.edit?.used ? "Your edit is kept in this browser; Run runs it." : this.begin)
  }

  build() {
    const button = (label, act) => {
      const made = Object.assign(document.createElement("button"), {
        type: "button", textContent: label, className: "lab-button"
      })
      made.addEventListener("click", () => act.call(this))
      return made
    }
    this.buttons = {
      run: button("Run", this.run),
      edit: button("Edit", this.toggleEditor),
      reset: button("Reset", this.reset),
      stop: button("Stop", this.stop)
    }
    this.status = Object.assign(document.createElement("p"), { className: "lab-status" })
    this.status.setAttribute("role", "status")
    this.code = Object.assign(document.createElement("textarea"), {
      id: `lab-code-${this.stem}`, className: "lab-code", spellcheck: false, wrap: "off",
      autocapitalize: "off", autocomplete: "off"
    })
    this.code.addEventListener("input", () => this.changed())
    this.code.addEventListener("keydown", event => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run()
    })
    const label = Object.assign(document.createElement("label"), {
      htmlFor: this.code.id, textContent: `${this.path} (Ctrl+Enter runs it)`
    })
    this.editor = Object.assign(document.createElement("div"), {
      id: `lab-editor-${this.stem}`, className: "lab-editor", hidden: true
    })
    this.editor.append(label, this.code)
    this.buttons.edit.setAttribute("aria-controls", this.editor.id)
    const bar = Object.assign(document.createElement("div"), { className: "lab-bar" })
    bar.setAttribute("role", "group")
    bar.setAttribute("aria-label", `Lab ${this.path}`)
    bar.append(...Object.values(this.buttons), this.status)
    this.element.querySelector(".lab-off").replaceWith(this.editor, bar)
  }

  /** Say what is the case and show the buttons that go with it. */
  show(message) {
    this.status.textContent = message
    const { run, edit, reset, stop } = this.buttons
    const busy = running?.lab === this
    const changed = Boolean(this.edit?.used) || this.output.textContent !== this.recorded
    const focused = document.activeElement
    run.setAttribute("aria-disabled", busy)
    edit.setAttribute("aria-expanded", !this.editor.hidden)
    stop.hidden = !busy
    reset.hidden = busy || !(changed || this.edit)
    reset.textContent = changed ? "Reset" : "Restore my edit"
    if (focused?.hidden && this.element.contains(focused)) run.focus()
  }

  async toggleEditor() {
    const { editor, code } = this
    if (!editor.hidden) {
      editor.hidden = true
      return this.show(this.status.textContent)
    }
    try {
      const original = await text(this.path)
      code.value = this.edit?.used ? this.edit.text : original
      code.rows = Math.min(24, code.value.split("\n").length)
      editor.hidden = false
      const old = this.edit?.used && this.edit.base !== original
      this.show(old ? "The lab has changed since your edit; Reset shows it." : this.status.textContent)
      code.focus()
      code.setSelectionRange(0, 0)
      code.scrollTop = 0
    } catch {
      this.show("The code could not be loaded; check the connection, then try again.")
    }
  }

  async changed() {
    const base = await text(this.path)
    const same = this.code.value === base
    this.edit = same ? null : { text: this.code.value, base, used: true }
    const stored = same ? forget(this.stem) : keep(this.stem, this.edit)
    this.show(same ? "As the page has it." : stored ? "Your edit is kept in this browser."
      : "This browser does not keep your edit: copy it before you leave.")
  }

  async reset() {
    const restore = this.buttons.reset.textContent !== "Reset"
    if (this.edit) keep(this.stem, Object.assign(this.edit, { used: restore }))
    this.output.textContent = this.recorded
    this.show(restore ? "Your edit is back; Run runs it." : this.begin)
    if (!this.editor.hidden) this.code.value = restore ? this.edit.text : await text(this.path)
  }

  stop() {
    running.halt()
    engine?.stop()
  }

  async run() {
    if (running?.lab === this) return
    running?.lab.stop()
    const mine = running = { lab: this, halted: false }
    const halted = new Promise(resolve => {
      mine.halt = () => {
        mine.halted = true
        resolve({ status: "stopped", message: "Stopped." })
      }
    })
    this.show("Loading Python …")
    const result = await Promise.race([this.execute(mine), halted])
    if (running === mine) running = undefined
    this.conclude(result)
  }

  async execute(mine) {
    let files
    try {
      files = await filesOf(this.stem)
      engine ??= new (await import("./engine.js")).Engine()
    } catch {
      return { status: "unavailable", message: "The code could not be loaded; check the connection." }
    }
    if (mine.halted) return
    if (this.edit?.used) files[this.path] = this.edit.text
    return engine.run({
      files,
      module: `snippets.${this.stem}`,
      onStart: () => {
        this.output.textContent = ""
        this.show("Running …")
      },
      onOutput: printed => this.output.append(printed)
    })
  }

  conclude({ status, message, seconds }) {
    if (status === "error") {
      const printed = this.output.textContent
      this.output.append(`${printed && !printed.endsWith("\n") ? "\n" : ""}${message}\n`)
      message = `Ended with ${message.split("\n").at(-1)}`
    }
    if (status === "done") {
      const same = this.output.textContent.trimEnd() === this.recorded.trimEnd()
      message = `Done in ${seconds.toFixed(2)} s${this.edit?.used ? " with your edit" : ""}; `
        + `the output is ${same ? "the same as" : "not the same as"} recorded.`
    }
    this.show(message)
  }
}

export function mount(element) {
  new Lab(element)
}

// a page that is left takes its program with it; Python stays loaded for the next page
document$.subscribe(() => running?.lab.element.isConnected === false && running.lab.stop())
