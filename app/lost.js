// Detects in the browser that the server is gone. The page, which finds its run again, reloads when a server answers.
const strip = document.createElement("div")
strip.setAttribute("role", "alert")
strip.textContent = "The connection to the server was lost. This page reloads when the server answers."
strip.style = "position: fixed; z-index: 9999; inset: auto 0 0 0; padding: 14px; text-align: center;" +
  "font: 600 15px sans-serif; background: #b3261e; color: #fff"
document.body.append(strip)
const script = document.querySelector("script[src]").src
const ask = async () => {
  try {
    await fetch(script, {method: "HEAD", cache: "no-store"})
    const again = new URL(location)
    again.searchParams.set("again", "1") // the server may still take the old connection for open
    location.replace(again)
  } catch {
    setTimeout(ask, 250)
  }
}
setTimeout(ask, 250)
