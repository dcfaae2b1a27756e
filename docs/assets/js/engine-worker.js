/* The worker of engine.js: loads Pyodide once, then runs one program a message. While a program
   runs nothing reaches this worker, so the page ends it from outside. What is printed is gathered,
   because a message for each print would keep the page too busy to notice its Stop button. */

const PRINTS_AT_ONCE = 50
const GATHER_MS = 100

let loading

/** Pyodide logs that it cannot have its WebAssembly, then waits for ever; this tells of it. */
const noWebAssembly = new Promise((_, reject) => {
  const instantiate = WebAssembly.instantiateStreaming
  WebAssembly.instantiateStreaming = (...given) => {
    const made = instantiate(...given)
    made.catch(reject)
    return made
  }
})

async function load(index) {
  const [{ loadPyodide }, source] = await Promise.all([
    import(`${index}pyodide.mjs`),
    fetch(new URL("./engine.py", import.meta.url)).then(response => response.text())
  ])
  const python = await loadPyodide({ indexURL: index, env: { PYTHONHASHSEED: "0" } })
  python.setStdin({ stdin: () => null })
  const scope = python.toPy({})
  python.runPython(source, { globals: scope, filename: "engine.py" })
  return { python, execute: scope.get("execute") }
}

/** Send what a program prints, as text, until `maxBytes` are reached. */
function printer(maxBytes) {
  const decoder = new TextDecoder()
  let held = "", bytes = 0, prints = 0, sent = 0, capped = false

  const flush = () => {
    if (held) self.postMessage({ kind: "output", text: held })
    held = ""
    sent = performance.now()
  }
  const write = buffer => {
    const kept = buffer.subarray(0, maxBytes - bytes)
    bytes += kept.length
    prints += 1
    held += decoder.decode(kept, { stream: true })
    if (prints <= PRINTS_AT_ONCE || performance.now() - sent > GATHER_MS) flush()
    if (kept.length < buffer.length && !capped) {
      capped = true // once, and nothing more is kept; the page ends this worker
      flush()
      self.postMessage({ kind: "capped" })
    }
    return buffer.length
  }
  return { write, flush }
}

function run({ python, execute }, { files, module, maxBytes }) {
  const { write, flush } = printer(maxBytes)
  python.setStdout({ write })
  python.setStderr({ write })
  self.postMessage({ kind: "started" })
  const began = performance.now()
  const given = python.toPy(files)
  const fault = execute(given, module)
  given.destroy()
  flush()
  const seconds = (performance.now() - began) / 1000
  self.postMessage({ kind: "ended", status: fault ? "error" : "done", message: fault, seconds })
}

self.onmessage = async ({ data }) => {
  let loaded
  try {
    loaded = await (loading ??= Promise.race([load(data.index), noWebAssembly]))
  } catch (error) {
    self.postMessage({ kind: "unloaded", message: String(error) })
    return
  }
  try {
    run(loaded, data)
  } catch (error) {
    // not a Python exception: the interpreter itself is gone
    self.postMessage({ kind: "broken", message: `Python stopped working: ${error.message ?? error}` })
  }
}
