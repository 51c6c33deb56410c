async () => {
  // Unfolds everything, waits until mathematics and pictures are there, and makes what is wider
  // than the paper smaller: Chromium would otherwise shrink the whole book. Returns what is missing.
  document.querySelectorAll("details").forEach(d => { d.open = true; });
  await MathJax.startup.promise;
  await Promise.all([...document.images].map(image => {
    image.loading = "eager";
    return image.complete ? image : new Promise(done => { image.onload = image.onerror = done; });
  }));
  await document.fonts.ready;
  const paper = document.querySelector("article").getBoundingClientRect();
  for (const wide of document.querySelectorAll("table, mjx-container[display=true]")) {
    const box = wide.getBoundingClientRect();
    if (box.right > paper.right) wide.style.zoom = (paper.right - box.left) / box.width;
  }
  return [...document.images].filter(i => i.naturalWidth === 0).map(i => i.alt);
}
