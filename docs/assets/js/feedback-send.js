/* Send one answer to the site's endpoint, within a time limit. */

const LIMIT_MS = 10_000

/* Return why the answer did not arrive, or null when it did. */
export async function send(endpoint, answer) {
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(), LIMIT_MS)
  try {
    const response = await fetch(endpoint, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(answer),
      credentials: "omit",
      referrerPolicy: "no-referrer",
      signal: limit.signal
    })
    return response.ok ? null : `the server answered ${response.status}`
  } catch {
    if (limit.signal.aborted) return `there was no answer within ${LIMIT_MS / 1000} seconds`
    return navigator.onLine ? "the server could not be reached" : "this browser is offline"
  } finally {
    clearTimeout(timer)
  }
}
