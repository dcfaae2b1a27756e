/* Let the keyboard scroll what is wider than its column, and keep the buttons that the theme puts on
   code from being landmarks. The theme makes both while the page is open. */

const WIDE = ".md-typeset__scrollwrap, div.arithmatex, .highlight-ipynb, .jp-OutputArea-output pre"

function heading(element) {
  for (let node = element; node; node = node.previousElementSibling ?? node.parentElement) {
    if (/^H[1-6]$/.test(node.tagName)) return node.firstChild.textContent.trim()
  }
  return document.title
}

const width = new ResizeObserver(entries => {
  for (const { target } of entries) {
    const scrolls = target.scrollWidth > target.clientWidth
    for (const [name, value] of [
      ["tabindex", "0"],
      ["role", "group"],
      ["aria-label", `Wide part of ${heading(target)}`]
    ]) scrolls ? target.setAttribute(name, value) : target.removeAttribute(name)
  }
})

export function repair() {
  const article = document.querySelector("article")
  const look = () => {
    // a landmark for each block of code would bury the ones that lead somewhere
    for (const bar of article.querySelectorAll("nav.md-code__nav:not([role])")) {
      bar.setAttribute("role", "none")
    }
    for (const part of article.querySelectorAll(`:is(${WIDE}):not([data-watched])`)) {
      part.dataset.watched = ""
      width.observe(part)
    }
  }
  look()
  new MutationObserver(look).observe(article, { childList: true, subtree: true })
}
