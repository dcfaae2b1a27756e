/* The reader's answers to exercises, kept in this browser under the stem and nowhere else. */

const SITE = new URL("../../", import.meta.url).pathname // other sites may share the host
const key = stem => `${SITE}.exercise:v1:${stem}`

/** The answer that was kept, or null. */
export function kept(stem) {
  try {
    return localStorage.getItem(key(stem))
  } catch {
    return null
  }
}

/** Keep an answer, or forget it when it is null; whether the browser did. */
export function keep(stem, text) {
  try {
    if (text === null) localStorage.removeItem(key(stem))
    else localStorage.setItem(key(stem), text)
    return true
  } catch {
    return false
  }
}
