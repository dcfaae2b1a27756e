/* The explorer's choice: read from an address, checked, and written to one. */

export const SIZES = ["B", "H", "N", "d", "Br"]
const NOT_OURS = ["h", "q"] // the site's search puts these into an address

const shown = text => (text.length > 40 ? `${text.slice(0, 40)}…` : text)

const came = (name, text) => (text.trim() ? `${name} came as “${shown(text)}”` : `${name} came empty`)

/* Return {value} for a text that is a size within its limit, else {fault}. */
export function size(name, text, data) {
  const most = data.limits[name]
  const value = Number(text)
  if (/^\s*\d+\s*$/.test(text) && value >= 1 && value <= most) return { value }
  const allowed = `a whole number from 1 to ${most.toLocaleString("en")}, written without commas`
  return { fault: `${came(name, text)}; allowed is ${allowed}.` }
}

/* Return {value} for one of the names allowed, else {fault}. */
function oneOf(name, text, allowed) {
  if (allowed.includes(text)) return { value: text }
  return { fault: `${came(name, text)}; allowed is one of ${allowed.join(", ")}.` }
}

export const device = (text, data) => oneOf("device", text, Object.keys(data.devices))

/* A device has peak rates for some data types only. */
export function dtype(text, owner, data) {
  const found = oneOf("dtype", text, Object.keys(data.devices[owner].peaks))
  return found.fault ? { fault: `${owner}: ${found.fault}` } : found
}

/* Read a query such as "?device=H200&N=4096". What is missing or wrong is as at the start; what is
   wrong is also named in `faults`. */
export function read(query, data) {
  const given = new URLSearchParams(query)
  const state = { ...data.start }
  const faults = []
  const take = (name, check) => {
    const texts = given.getAll(name)
    if (texts.length === 0) return
    const found = texts.length > 1
      ? { fault: `${name} came ${texts.length} times; allowed is once.` }
      : check(texts[0])
    if (found.fault) faults.push(`${found.fault} Shown instead: ${state[name]}.`)
    else state[name] = found.value
  }
  take("device", text => device(text, data))
  take("dtype", text => dtype(text, state.device, data))
  for (const name of SIZES) take(name, text => size(name, text, data))
  for (const name of new Set(given.keys())) {
    if (!(name in data.start) && !NOT_OURS.includes(name)) {
      faults.push(`The address names “${shown(name)}”; the explorer knows ${
        Object.keys(data.start).join(", ")}.`)
    }
  }
  return { state, faults }
}

/* The whole choice, so that an address means the same whatever the explorer starts with. */
export const write = state => `?${new URLSearchParams(state)}`
