/* A first run loads Python, and a page says how much that is. Here the labs and exercises of a page
   hear that it is there, whichever of them loaded it. */

let loaded = false
const waiting = []

/** Call `change` when Python has been loaded, at once where it has. */
export function onceLoaded(change) {
  if (loaded) change()
  else waiting.push(change)
}

export function announceLoaded() {
  loaded = true
  waiting.splice(0).forEach(change => change())
}
