/* Each part of a page that does more than stand there names its module: `data-feature="player"`
   is mounted by `mount(element)` of player.js and styled by player.css. Both are loaded when the
   part comes near the screen, so that a page weighs what it shows. */

import { KEY, choose } from "./record.js"
import { repair } from "./theme.js"

const NEAR = "200px"

function style(name) {
  const href = new URL(`./${name}.css`, import.meta.url).href
  if (document.querySelector(`link[href="${href}"]`)) return
  return new Promise((resolve, reject) => {
    const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href })
    link.onload = resolve
    link.onerror = () => reject(new Error(`no ${href}`))
    document.head.append(link)
  })
}

async function mount(element) {
  const name = element.dataset.feature
  try {
    const [feature] = await Promise.all([import(`./${name}.js`), style(name)])
    await feature.mount(element)
    element.dataset.mounted = "done"
  } catch (error) {
    console.error(`${name} does not work on this page`, error)
  }
}

const approach = new IntersectionObserver(entries => {
  for (const entry of entries.filter(entry => entry.isIntersecting)) {
    approach.unobserve(entry.target)
    mount(entry.target)
  }
}, { rootMargin: NEAR })

// progress.js is loaded once there is progress to show, or the reader sets some
const showProgress = () => import("./progress.js").then(progress => progress.show())

document.addEventListener("change", ({ target }) => {
  if (!target.matches(".progress input")) return
  choose(target)
  showProgress()
})

addEventListener("storage", ({ key }) => { // another tab has set some; null: has cleared storage
  if (key === KEY || key === null) showProgress()
})

// fires on the first load and after each instant navigation, which brings new elements
document$.subscribe(() => {
  repair()
  if (localStorage.getItem(KEY)) showProgress()
  for (const element of document.querySelectorAll("[data-feature]:not([data-mounted])")) {
    element.dataset.mounted = ""
    approach.observe(element)
  }
})
