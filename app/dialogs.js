/* Dialogs and the escape key.

A dialog closes at the key while the focus is in it. As the window shrinks, the drawer comes over the page and takes the
focus, or a control goes away with it; the key is handed to the dialog that is on top then. */
{
  const OWN = ".MuiDialog-root, .MuiPopover-root, .MuiPopper-root" // these take the key themselves
  const dialogs = (root) => [...root.querySelectorAll("*")].flatMap((el) => [
    ...(el.matches(".MuiDialog-root") ? [el] : []),
    ...(el.shadowRoot ? dialogs(el.shadowRoot) : []),
  ])

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.composedPath().some((el) => el.matches?.(OWN))) { return }
    // The drawer is the top one for the library, so the dialog would not take the key from a hand either.
    const close = dialogs(document).filter((el) => el.checkVisibility()).at(-1)?.querySelector("[aria-label=close]")
    if (!close) { return }
    event.stopPropagation()
    close.click()
  }, true)
}
