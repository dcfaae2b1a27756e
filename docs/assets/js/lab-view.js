/* The controls of one lab, put in place of the line that stands there without JavaScript. */

function made(tag, properties, attributes = {}) {
  const element = Object.assign(document.createElement(tag), properties)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  return element
}

function button(label, attributes) {
  return made("button", { type: "button", textContent: label, className: "lab-button" }, attributes)
}

/** Return the parts: `run`, `edit`, `reset` and `stop` are buttons, `code` is the text field. */
export function controls(element, stem) {
  const path = `snippets/${stem}.py`
  const code = made("textarea", {
    id: `lab-code-${stem}`, className: "lab-code", spellcheck: false, wrap: "off"
  }, { autocapitalize: "off", autocomplete: "off" })
  const label = made("label", { htmlFor: code.id, textContent: `${path} (Ctrl+Enter runs it)` })
  const editor = made("div", { id: `lab-editor-${stem}`, className: "lab-editor", hidden: true })
  editor.append(label, code)

  const [run, edit] = [button("Run"), button("Edit", { "aria-controls": editor.id })]
  const [reset, stop] = [button("Reset"), button("Stop")]
  const status = made("p", { className: "lab-status" }, { role: "status" })
  const bar = made("div", { className: "lab-bar" }, { role: "group", "aria-label": `Lab ${path}` })
  bar.append(run, edit, reset, stop, status)
  element.querySelector(".lab-off").replaceWith(editor, bar)
  return { run, edit, reset, stop, status, editor, code }
}
