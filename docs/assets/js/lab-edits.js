/* The reader's edits of labs, kept in this browser under the stem of the lab and nowhere else. */

const SITE = new URL("../../", import.meta.url).pathname // other sites may share the host
const key = stem => `${SITE}.lab:v1:${stem}`

/** The edit of one lab: `text`, the `base` it was made from, and whether it is `used`; or null. */
export function kept(stem) {
  try {
    const { text, base, used } = JSON.parse(localStorage.getItem(key(stem)))
    return typeof text === "string" ? { text, base, used: used === true } : null
  } catch {
    return null
  }
}

/** Whether the browser has kept it: one that refuses storage has none of its own, but a stand-in. */
export function keep(stem, edit) {
  try {
    localStorage.setItem(key(stem), JSON.stringify(edit))
    return localStorage instanceof Storage
  } catch {
    return false
  }
}

export function forget(stem) {
  try {
    localStorage.removeItem(key(stem))
  } catch {
    // then nothing was kept
  }
}
