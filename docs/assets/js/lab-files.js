/* The files of labs as the site has them, each fetched once a visit: labs share most of them. */

const LABS = new URL("../labs/", import.meta.url)
const texts = new Map() // path: promise of the file's text

async function fetchText(path) {
  const response = await fetch(new URL(path, LABS))
  if (!response.ok) throw new Error(`${response.status} ${path}`)
  return response.text()
}

export function text(path) {
  if (!texts.has(path)) {
    texts.set(path, fetchText(path))
    texts.get(path).catch(() => texts.delete(path)) // so that the next click tries again
  }
  return texts.get(path)
}

/** All that one lab runs and reads: an object from path to text. */
export async function filesOf(stem) {
  const paths = JSON.parse(await text(`${stem}.json`))
  return Object.fromEntries(await Promise.all(paths.map(async path => [path, await text(path)])))
}
