"""Your data in a real browser: a file is dropped, questions are answered, it plays, and a row is predicted."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from driving import BLUR, Lab, until

ROWS = [f"{i / 7:.3f},{'new' if i % 3 else 'old'},2024-01-{i % 28 + 1:02d},{i % 9},{i * i / 50:.3f}" for i in range(80)]
FILE = "\n".join(["size,kind,day,depth,price", *ROWS])
# Drop a file on the field, as a hand does that drags it there.
DROP = """(zone, text) => {
  const data = new DataTransfer()
  data.items.add(new File([text], "houses.csv", {type: "text/csv"}))
  for (const name of ["dragenter", "dragover", "drop"]) {
    zone.dispatchEvent(new DragEvent(name, {dataTransfer: data, bubbles: true, cancelable: true}))
  }
}"""


class OwnTablePage(Lab):
    """The Lab with a table of one's own."""

    def zone(self) -> Any:
        """Return the field that a file is dropped on."""
        return self.page.locator("label:has(input[type=file])")

    def role(self, column: str) -> Any:
        """Return the select that says what a column is for."""
        return self.page.get_by_label(f"Role of {column}")

    def verdict(self) -> str:
        """Return the line above the stage."""
        return " ".join(self.page.locator(".verdict div:has(> b)").all_inner_texts())

    def answer(self) -> str:
        """Return what is predicted for the row in the form."""
        return " ".join(self.page.get_by_role("dialog").locator("h3, p, table").all_inner_texts())


def test_escape_closes_the_dialog_where_the_focus_has_gone(open_page: Callable[..., Any], dashboard: Any) -> None:
    lab = OwnTablePage(open_page(f"{dashboard.url}?page=lab&your_data=1", viewport={"width": 1280, "height": 720}))
    lab.zone().wait_for()
    lab.page.set_viewport_size({"width": 390, "height": 844})
    lab.page.evaluate(BLUR)
    lab.page.keyboard.press("Escape")
    until(lambda: not lab.page.locator(".MuiDialog-root").count(), 10, "the dialog stayed")


def test_a_dropped_file_is_sampled_and_a_row_is_predicted(
    open_page: Callable[..., Any], dashboard: Any, tmp_path: Path
) -> None:
    lab = OwnTablePage(open_page(f"{dashboard.url}?page=lab&your_data=1", viewport={"width": 1280, "height": 720}))
    lab.zone().wait_for()
    spreadsheet = tmp_path / "sheet.xlsx"
    spreadsheet.write_bytes(b"PK\x03\x04 a spreadsheet, zipped")
    lab.page.locator("input[type=file]").set_input_files(spreadsheet)
    lab.page.locator(".error[role=alert]:visible", has_text="spreadsheet").wait_for()
    lab.zone().evaluate(DROP, FILE.replace(",0.000", ",unknown"))
    lab.page.get_by_text("holds numbers and texts").first.wait_for()
    lab.zone().evaluate(DROP, FILE)
    until(lambda: lab.select("Predict the column").inner_text() == "price", 60, "the columns did not come")
    assert lab.role("day").input_value() == "input" and lab.role("price").input_value() == "target"
    lab.role("depth").focus()
    lab.page.keyboard.press("ArrowDown")  # from input to target, by the keyboard
    until(lambda: lab.select("Predict the column").inner_text() == "depth", 10, "the role was not taken")
    lab.page.get_by_text("may be classes or amounts").first.wait_for()
    lab.role("price").select_option("target")
    lab.page.get_by_text(re.compile("^HMC ")).first.wait_for()
    lab.page.get_by_role("dialog").get_by_role("button", name="Play", exact=True).click()
    until(lambda: "houses.csv: price" in lab.verdict() and "verdict yet" in lab.verdict(), 60, "no state was said")
    until(lambda: re.search(r"\d+% of 8 held-out rows", lab.verdict()), 150, "no verdict came")
    lab.press("Predict a row")
    until(lambda: re.search(r"price: [\d.]+ \([\d.]+ to [\d.]+\)", lab.answer()), 30, "no prediction came")
    assert "Near the training data" in lab.answer()
    lab.page.get_by_label(re.compile("^size")).fill("90,5")
    until(lambda: "Far from the training data" in lab.answer(), 20, "the row was not told as far")
    lab.page.get_by_label(re.compile("^kind")).select_option("old")
    lab.page.get_by_label(re.compile("^depth")).fill("deep")
    lab.page.get_by_text("'deep'").wait_for()
    lab.page.get_by_label(re.compile("^depth")).fill("4")
    until(lambda: "90% interval" in lab.answer(), 20, "the prediction did not come back")
    lab.page.get_by_label(re.compile("^depth")).press("Escape")
    lab.press("Share")
    lab.page.get_by_text("your own data").first.wait_for()
