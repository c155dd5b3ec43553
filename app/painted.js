// A task that is asked for in the animation frame with the figures in it runs when that frame has been painted.
// (A second animation frame would say so too, but the browser would compose the whole page once more for it.)
const number = sent.data.number[0]
requestAnimationFrame(() => {
  const after = new MessageChannel()
  after.port1.onmessage = () => { painted.data = {number: [number]}; after.port1.close() }
  after.port2.postMessage(null)
})
