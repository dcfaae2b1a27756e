/* Python for a page: one worker, loaded by the first run and kept for the next ones. A run that is
   stopped takes the worker with it, since nothing else ends a loop; the next run starts a new one.

     const engine = new Engine({ limitMs: 20_000, maxBytes: 65_536 })
     const { status, message, seconds } = await engine.run({
       files: { "snippets/roofline.py": "..." }, module: "snippets.roofline", onOutput: show
     })

   `status` is done, error (`message` is the traceback), stopped, timeout, capped or unavailable.
   `seconds` are those of the program, without loading Python. A page runs one program at a time:
   a new run stops the one in progress, whichever engine started it. */

import { announceLoaded } from "./first-load.js"

const PYODIDE = new URL("../pyodide/", import.meta.url)
const WORKER = new URL("./engine-worker.js", import.meta.url)
const NOT_BUILT = "This copy of the site was built without Python for the browser."
const NOT_LOADED = "Python could not be loaded; check the connection, then run again."

let worker // of the page, whichever engine it runs for
let current // the run in progress

/** The version of Pyodide that the build put here, null where it put none. */
async function version() {
  const response = await fetch(new URL("engine.json", PYODIDE))
  if (!response.ok) throw new Error(`${response.status} ${response.url}`)
  return (await response.json()).version
}

export async function available() {
  return version().then(found => found !== null, () => false)
}

function discard() {
  worker?.terminate()
  worker = undefined
}

export class Engine {
  #limitMs
  #maxBytes
  #run

  constructor({ limitMs = 20_000, maxBytes = 65_536 } = {}) {
    this.#limitMs = limitMs
    this.#maxBytes = maxBytes
  }

  /** `onStart` is called when Python is loaded and the program begins. */
  run({ files, module, onOutput = () => {}, onStart = () => {} }) {
    current?.end("stopped", "Stopped: another program was started.")
    return new Promise(resolve => {
      const run = { began: performance.now() }
      run.end = (status, message, seconds = (performance.now() - run.began) / 1000) => {
        if (current !== run) return
        current = undefined
        clearTimeout(run.timer)
        if (status !== "done" && status !== "error") discard()
        resolve({ status, message, seconds })
      }
      current = this.#run = run
      this.#start(run, { files, module, onOutput, onStart })
    })
  }

  stop() {
    this.#run?.end("stopped", "Stopped.")
  }

  async #start(run, { files, module, onOutput, onStart }) {
    const found = await version().catch(() => undefined)
    if (current !== run) return
    if (found === undefined) return run.end("unavailable", NOT_LOADED)
    if (found === null) return run.end("unavailable", NOT_BUILT)

    const limit = `${this.#limitMs / 1000} s`
    const heard = {
      started: () => {
        announceLoaded()
        run.began = performance.now()
        run.timer = setTimeout(
          () => run.end("timeout", `Stopped at the time limit of ${limit}.`), this.#limitMs)
        onStart()
      },
      output: ({ text }) => onOutput(text),
      capped: () => run.end(
        "capped", `Stopped: it printed more than ${Math.round(this.#maxBytes / 1024)} KiB.`),
      ended: ({ status, message, seconds }) => run.end(status, message, seconds),
      broken: ({ message }) => {
        discard()
        run.end("error", message)
      },
      unloaded: () => run.end("unavailable", NOT_LOADED)
    }
    worker ??= new Worker(WORKER, { type: "module" })
    worker.onmessage = ({ data }) => current === run && heard[data.kind](data)
    worker.onerror = () => run.end("unavailable", NOT_LOADED)
    const index = new URL(`${found}/`, PYODIDE).href
    worker.postMessage({ index, files, module, maxBytes: this.#maxBytes })
  }
}
