// What scrolls sideways can be reached by the keyboard.
addEventListener("DOMContentLoaded", () => {
  const reach = () => {
    for (const box of document.querySelectorAll("pre, .table-wrapper, .picture, .cell-html, div.math"))
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  };
  reach();
  addEventListener("resize", reach);
});
