"""Hold the records that come with bnnviz to what their experiments announce, and write the document of all figures."""
