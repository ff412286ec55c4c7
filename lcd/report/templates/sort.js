document.querySelectorAll("table.sortable").forEach(function (table) {
  var heads = table.tHead.rows[0].cells;
  Array.prototype.forEach.call(heads, function (head, column) {
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.textContent = "";
    head.appendChild(button);
    button.addEventListener("click", function () {
      var down = head.getAttribute("aria-sort") === "descending";
      Array.prototype.forEach.call(heads, function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", down ? "ascending" : "descending");
      var body = table.tBodies[0], sign = down ? 1 : -1;
      Array.from(body.rows).sort(function (a, b) {
        var x = a.cells[column].getAttribute("data-value"), y = b.cells[column].getAttribute("data-value");
        if (x === "" || y === "") { return (x === "") - (y === ""); }
        var p = parseFloat(x), q = parseFloat(y);
        return sign * (isNaN(p) || isNaN(q) ? x.localeCompare(y) : p - q);
      }).forEach(function (row) { body.appendChild(row); });
    });
  });
});
