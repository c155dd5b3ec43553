// Nothing that comes from the server can say that the server is gone.
const strip = document.createElement("div")
strip.setAttribute("role", "alert")
strip.textContent = "The connection to the server was lost. Reload the page when the server is back."
strip.style = "position: fixed; z-index: 9999; inset: auto 0 0 0; padding: 14px; text-align: center;" +
  "font: 600 15px sans-serif; background: #b3261e; color: #fff"
document.body.append(strip)
