// Lessons take the colours of the page that they are in.
const follow = () => {
  const dark = document.documentElement.dataset.theme === "dark"
  for (const frame of document.querySelectorAll("figure.lesson iframe")) {
    frame.src = `${frame.getAttribute("src").replace(/&(dark|light)$/, "")}&${dark ? "dark" : "light"}`
  }
}
follow()
new MutationObserver(follow).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] })

// The theme's arrows that open a part of the sidebar have no name.
for (const arrow of document.querySelectorAll("nav li > details > summary")) {
  const above = arrow.closest("li").querySelector("a")
  if (above && !arrow.textContent.trim()) { arrow.setAttribute("aria-label", `Pages of ${above.textContent.trim()}`) }
}
