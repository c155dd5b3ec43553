/* Dialogs and the escape key.

A dialog with the focus closes on Escape. When the window shrinks, the drawer covers the page and takes the focus, or the
focused control disappears; this script then passes the key to the topmost dialog. */
{
  const OWN = ".MuiDialog-root, .MuiPopover-root, .MuiPopper-root" // these take the key themselves
  const dialogs = (root) => [...root.querySelectorAll("*")].flatMap((el) => [
    ...(el.matches(".MuiDialog-root") ? [el] : []),
    ...(el.shadowRoot ? dialogs(el.shadowRoot) : []),
  ])

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.composedPath().some((el) => el.matches?.(OWN))) { return }
    // The library considers the drawer to be on top, so the dialog would ignore the key.
    const close = dialogs(document).filter((el) => el.checkVisibility()).at(-1)?.querySelector("[aria-label=close]")
    if (!close) { return }
    event.stopPropagation()
    close.click()
  }, true)
}
