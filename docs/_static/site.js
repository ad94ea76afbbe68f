// What scrolls sideways can be reached by the keyboard.
addEventListener("DOMContentLoaded", () => {
  const reach = () => {
    for (const box of document.querySelectorAll("pre, .table-wrapper, .picture, .cell-html, div.math"))
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  };
  reach();
  for (const [which, name] of [[".sidebar-drawer", "Pages"], [".toc-drawer", "On this page"]])
    document.querySelector(which)?.setAttribute("aria-label", name);
  addEventListener("load", reach);
  addEventListener("resize", reach);
});
