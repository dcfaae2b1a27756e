/* Let the keyboard scroll what is larger than its place, and keep the buttons that the theme puts on
   code from being landmarks. The theme makes both while the page is open, and looks at the width of
   code once, though a fold may hide it then. */

const WIDE = ".md-typeset__scrollwrap, div.arithmatex, .highlight-ipynb, .jp-OutputArea-output pre"

function heading(element) {
  for (let node = element; node; node = node.previousElementSibling ?? node.parentElement) {
    if (/^H[1-6]$/.test(node.tagName)) return node.firstChild.textContent.trim()
  }
  return document.title
}

const size = new ResizeObserver(entries => {
  for (const { target } of entries) {
    const { scrollWidth, clientWidth, scrollHeight, clientHeight } = target
    const scrolls = scrollWidth > clientWidth || scrollHeight > clientHeight + 1
    if (scrolls) target.tabIndex = 0
    else target.removeAttribute("tabindex")
    if (target.matches("code")) continue // says by itself what it is
    target.role = scrolls ? "group" : null
    target.ariaLabel = scrolls ? `Large part of ${heading(target)}` : null
  }
})

export function repair() {
  const article = document.querySelector("article")
  const look = () => {
    // a landmark for each block of code would bury the ones that lead somewhere
    for (const bar of article.querySelectorAll("nav.md-code__nav:not([role])")) {
      bar.setAttribute("role", "none")
    }
    for (const part of article.querySelectorAll(`:is(${WIDE}, pre > code):not([data-watched])`)) {
      part.dataset.watched = ""
      size.observe(part)
    }
  }
  look()
  new MutationObserver(look).observe(article, { childList: true, subtree: true })
}
