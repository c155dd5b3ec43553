// Says in which language the texts are that stand beside this element.

export function render({model, el}) {
  const say = () => {
    const around = el.getRootNode().host?.getRootNode().host
    if (model.language) { around?.setAttribute("lang", model.language) } else { around?.removeAttribute("lang") }
  }
  model.on("language", say)
  requestAnimationFrame(say)  // once it stands in the page
}
