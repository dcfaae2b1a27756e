/* Run and edit a lab under its code. The recorded output is what stands there at first; the code is
   the site's own file, fetched on the first Run or Edit, as is Python itself on the first Run. */

import { onceLoaded } from "./first-load.js"
import { forget, keep, kept } from "./lab-edits.js"
import { filesOf, text } from "./lab-files.js"
import { controls } from "./lab-view.js"

const CANNOT_LOAD = "The code could not be loaded; check the connection, then try again."
let engine // of the page, made by the first Run
let running // { lab, edited, halted, halt } while a program runs

class Lab {
  constructor(element) {
    this.element = element
    this.stem = element.dataset.lab
    this.path = `snippets/${this.stem}.py`
    this.output = element.querySelector("pre > code")
    this.recorded = this.output.textContent
    this.edit = kept(this.stem) // { text, base, used }, or null
    const recorded = "Recorded when the site was built."
    const first = this.begin = `${recorded} The first Run loads Python, ${element.dataset.python}.`
    this.view = controls(element, this.stem)
    this.view.run.addEventListener("click", () => this.run())
    this.view.edit.addEventListener("click", () => this.toggleEditor())
    this.view.reset.addEventListener("click", () => this.reset())
    this.view.stop.addEventListener("click", () => this.stop())
    this.view.code.addEventListener("input", () => this.changed())
    this.view.code.addEventListener("keydown", event => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.run()
    })
    this.show(this.edit?.used ? "Your edit is kept in this browser; Run runs it." : this.begin)
    onceLoaded(() => {
      this.begin = recorded
      if (this.view.status.textContent === first) this.show(recorded)
    })
  }

  /** Say what is the case and show the buttons that go with it. */
  show(message = this.view.status.textContent) {
    const { run, edit, reset, stop, status, editor } = this.view
    const focused = document.activeElement
    const busy = running?.lab === this
    const changed = Boolean(this.edit?.used) || this.output.textContent !== this.recorded
    status.textContent = message
    run.setAttribute("aria-disabled", busy)
    edit.setAttribute("aria-expanded", !editor.hidden)
    stop.hidden = !busy
    reset.hidden = busy || !(changed || this.edit)
    reset.textContent = changed ? "Reset" : "Restore my edit"
    if (focused === stop && stop.hidden || focused === reset && reset.hidden) run.focus()
  }

  async toggleEditor() {
    const { editor, code } = this.view
    if (!editor.hidden) {
      editor.hidden = true
      return this.show()
    }
    const original = await text(this.path).catch(() => null)
    if (original === null) return this.show(CANNOT_LOAD)
    code.value = this.edit?.used ? this.edit.text : original
    code.rows = Math.min(24, code.value.split("\n").length)
    editor.hidden = false
    const old = this.edit?.used && this.edit.base !== original
    this.show(old ? "The lab has changed since your edit; Reset shows it." : undefined)
    code.focus()
    code.setSelectionRange(0, 0)
    code.scrollTop = 0
  }

  async changed() {
    const written = this.view.code.value
    const base = await text(this.path)
    const same = written === base
    this.edit = same ? null : { text: written, base, used: true }
    if (same) {
      forget(this.stem)
      return this.show("As the page has it.")
    }
    this.show(keep(this.stem, this.edit) ? "Your edit is kept in this browser."
      : "This browser does not keep your edit: copy it before you leave.")
  }

  async reset() {
    const restore = this.view.reset.textContent !== "Reset"
    if (this.edit) keep(this.stem, Object.assign(this.edit, { used: restore }))
    this.output.textContent = this.recorded
    this.show(restore ? "Your edit is back; Run runs it." : this.begin)
    const { editor, code } = this.view
    if (!editor.hidden) code.value = restore ? this.edit.text : await text(this.path)
  }

  stop() {
    running.halt()
    engine?.stop()
  }

  async run() {
    if (running?.lab === this) return
    running?.lab.stop()
    const mine = running = { lab: this, edited: Boolean(this.edit?.used), halted: false }
    const halted = new Promise(resolve => {
      mine.halt = () => {
        mine.halted = true
        resolve({ status: "stopped", message: "Stopped." })
      }
    })
    this.show("Loading Python …")
    const result = await Promise.race([this.execute(mine), halted])
    if (running === mine) running = undefined
    this.conclude(result, mine.edited)
  }

  async execute(mine) {
    const code = mine.edited ? this.edit.text : undefined
    const loaded = await Promise.all([filesOf(this.stem), import("./engine.js")]).catch(() => null)
    if (!loaded) return { status: "unavailable", message: CANNOT_LOAD }
    if (mine.halted) return
    const [files, { Engine }] = loaded
    engine ??= new Engine()
    return engine.run({
      files: { ...files, [this.path]: code ?? files[this.path] },
      module: `snippets.${this.stem}`,
      onStart: () => {
        this.output.textContent = ""
        this.show("Running …")
      },
      onOutput: printed => this.output.append(printed)
    })
  }

  conclude({ status, message, seconds }, edited) {
    const { output } = this
    if (status === "error") {
      const cut = output.textContent && !output.textContent.endsWith("\n")
      output.append(`${cut ? "\n" : ""}${message}\n`)
      message = `Ended with ${message.split("\n").at(-1)}`
    }
    if (status === "done") {
      const same = output.textContent.trimEnd() === this.recorded.trimEnd()
      message = `Done in ${seconds.toFixed(2)} s${edited ? " with your edit" : ""}; `
        + `the output is ${same ? "the same as" : "not the same as"} recorded.`
    }
    const scrolls = output.scrollHeight > output.clientHeight || output.scrollWidth > output.clientWidth
    if (scrolls) output.tabIndex = 0
    this.show(message)
  }
}

export function mount(element) {
  new Lab(element)
}

// a page that is left takes its program with it; Python stays loaded for the next page
document$.subscribe(() => running?.lab.element.isConnected === false && running.lab.stop())
