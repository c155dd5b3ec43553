// A task posted in an animation frame runs after that frame has been painted.
// (A second animation frame would make the browser compose the whole page again.)
const number = sent.data.number[0]
requestAnimationFrame(() => {
  const after = new MessageChannel()
  after.port1.onmessage = () => { painted.data = {number: [number]}; after.port1.close() }
  after.port2.postMessage(null)
})
