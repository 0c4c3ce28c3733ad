/** Put text on the clipboard, also where a page over plain HTTP has no clipboard API. */

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

function copySelected(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  return copied;
}

/** Let the browser save a file. */
export function download(name: string, content: string | Uint8Array<ArrayBuffer>, type = "application/jsonl"): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
