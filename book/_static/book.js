// What a page does besides: a tap enlarges a figure, and a table that can be scrolled says so.

function enlarge(image) {
  const dialog = document.createElement("dialog");
  dialog.className = "zoom";
  const copy = image.cloneNode();
  copy.removeAttribute("style");
  if (image.closest(".tag_photo")) copy.classList.add("photo");
  dialog.append(copy);
  dialog.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function markWideTables() {
  for (const table of document.querySelectorAll(".bd-content table")) {
    const box = table.parentElement;
    box.classList.remove("scrolls");
    if (table.scrollWidth > box.clientWidth + 1) {
      box.classList.add("scrolls");
      box.tabIndex = 0;
    }
  }
  for (const box of document.querySelectorAll(".tag_scroll-output .cell_output"))
    if (box.scrollHeight > box.clientHeight + 1) box.tabIndex = 0;
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelector(".bd-content")?.addEventListener("click", (event) => {
    if (event.target.matches("figure img") && !event.target.closest("a")) enlarge(event.target);
  });
  markWideTables();
  window.addEventListener("resize", markWideTables);
});
