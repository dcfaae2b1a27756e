/* "Was this lesson helpful?": the answer is sent where the site names an endpoint. Where there is
   none, or sending fails, it is kept in this browser, to be sent again or copied. */

import { send } from "./feedback-send.js"

const KEY = `${__md_scope.pathname}.feedback:v1`

function kept() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? {}
  } catch {
    return {}
  }
}

/* Keep the answer to one lesson, or forget it where it is null; return whether the browser did. */
function keep(lesson, answer) {
  try {
    const { [lesson]: _, ...others } = kept()
    const answers = answer ? { ...others, [lesson]: answer } : others
    if (Object.keys(answers).length) localStorage.setItem(KEY, JSON.stringify(answers))
    else localStorage.removeItem(KEY)
    return localStorage instanceof Storage // storage.html stands in for storage that is refused
  } catch {
    return false
  }
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text)
    return "Copied."
  } catch {
    return `This browser does not let a page copy. Here it is: ${text}`
  }
}

export function mount(form) {
  const { lesson, endpoint } = form.dataset
  const fields = form.querySelector(".feedback-answer")
  const after = form.querySelector(".feedback-kept")
  const status = form.querySelector("[role=status]")
  const { helpful, note } = form.elements
  const answer = () => ({ lesson, helpful: helpful.value, note: note.value.trim() })
  let sending = false

  function say(text, offers) {
    status.textContent = text
    after.hidden = !offers
  }

  function keepAndSay(why) {
    const done = keep(lesson, answer())
    say(done
      ? `${why} Your answer is kept in this browser.`
      : `${why} Your answer could not be kept either: this browser refuses storage. Copy it.`, true)
  }

  async function deliver() {
    if (sending || !form.reportValidity()) return
    if (!endpoint) return keepAndSay("Nothing was sent.")
    sending = true
    say("Sending …", false)
    const failure = await send(endpoint, answer())
    sending = false
    if (failure) return keepAndSay(`Not sent: ${failure}.`)
    keep(lesson, null)
    fields.hidden = true
    say("Thank you, your answer has arrived.", false)
    status.focus() // it was on the button, which is gone
  }

  form.addEventListener("submit", event => {
    event.preventDefault()
    deliver()
  })
  after.addEventListener("click", async ({ target }) => {
    if (target.value === "send") await deliver()
    if (target.value === "copy") status.textContent = await copy(JSON.stringify(answer()))
    if (target.value === "forget") {
      keep(lesson, null)
      form.reset()
      say("Forgotten.", false)
    }
  })

  const before = kept()[lesson]
  if (before) {
    helpful.value = before.helpful
    note.value = before.note
    say("You have answered before; your answer is kept in this browser and was not sent.", true)
  }
  fields.hidden = false
}
