/**
 * Fetches the status page again, and keeps focus, selection and opened details. One file without imports, as it becomes
 * part of the page.
 */

/** From an answer to the next request. */
const PAUSE_MS = 2000;
/** A process that does not answer for this long is frozen. */
const PATIENCE_MS = 5000;
const TOLD_MS = 10_000;

const parser = new DOMParser();
const stale = required('stale');
const told = required('told');
const announced = required('announced');
const icon = required('icon');
let headline = headlineOf(document);
let forgetting = 0;

function required(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no #${id}`);
  return element;
}

function headlineOf(page: Document): string {
  // Passing times are not announced.
  const first = page.querySelector('#verdict .first')?.cloneNode(true) as Element | undefined;
  for (const time of first?.querySelectorAll('time') ?? []) time.remove();
  return first?.textContent?.trim().replace(/ \.$/, '') ?? '';
}

async function refresh(): Promise<void> {
  try {
    const answer = await fetch('./', {
      headers: { accept: 'text/html' },
      cache: 'no-store',
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    show(parser.parseFromString(await answer.text(), 'text/html'));
  } catch (error) {
    showStale(error);
  }
}

function show(next: Document): void {
  stale.hidden = true;
  document.body.classList.remove('stale');
  document.title = next.title;
  setAttribute(icon, 'href', next.getElementById('icon')?.getAttribute('href') ?? '');
  const nextHeadline = headlineOf(next);
  if (nextHeadline !== headline) {
    headline = nextHeadline;
    announced.textContent = headline;
  }
  const isHeld = isSelecting();
  required('paused').hidden = !isHeld;
  const main = next.getElementById('main');
  if (!isHeld && main !== null) takeOver(required('main'), main);
}

function showStale(error: unknown): void {
  const why = error instanceof Error && error.name === 'TimeoutError' ? 'is frozen' : 'does not answer';
  const message = `Stale: the sidecar ${why}. What is shown was so at ${required('as-of').textContent}.`;
  // A rewritten text would be announced again.
  if (stale.textContent !== message || stale.hidden) stale.textContent = message;
  stale.hidden = false;
  document.body.classList.add('stale');
  if (!document.title.startsWith('STALE')) document.title = `STALE ${document.title}`;
  setAttribute(icon, 'href', icon.dataset['stale'] ?? '');
}

/** Selected text must not vanish before it is copied. */
function isSelecting(): boolean {
  const selection = document.getSelection();
  return selection !== null && !selection.isCollapsed && selection.containsNode(required('main'), true);
}

/** With the fewest changes. */
function takeOver(element: Element, next: Element): void {
  for (const { name } of [...element.attributes]) {
    if (!next.hasAttribute(name) && !isReaders(element, name)) element.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (!isReaders(element, name)) setAttribute(element, name, value);
  }
  takeOverChildren(element, [...next.childNodes]);
}

/** Set by the reader. */
function isReaders(element: Element, name: string): boolean {
  return (
    (name === 'open' && element.localName === 'details') || (name === 'hidden' && element.id === 'paused')
  );
}

function takeOverChildren(element: Element, next: readonly Node[]): void {
  let place: ChildNode | null = element.firstChild;
  for (const wanted of next) {
    const same = findSame(place, wanted);
    if (same === undefined) {
      element.insertBefore(document.importNode(wanted, true), place);
      continue;
    }
    if (same === place) place = same.nextSibling;
    else element.insertBefore(same, place);
    if (same instanceof Element) takeOver(same, wanted as Element);
    else if (same.nodeValue !== wanted.nodeValue) same.nodeValue = wanted.nodeValue;
  }
  while (place !== null) {
    const gone: ChildNode = place;
    place = place.nextSibling;
    gone.remove();
  }
}

/** By its id; else the node in its place, if of the same kind. */
function findSame(place: ChildNode | null, wanted: Node): ChildNode | undefined {
  if (wanted instanceof Element && wanted.id !== '') {
    for (let node = place; node !== null; node = node.nextSibling) {
      if (node instanceof Element && node.id === wanted.id) return node;
    }
    return undefined;
  }
  if (place === null || place.nodeName !== wanted.nodeName) return undefined;
  return place instanceof Element && place.id !== '' ? undefined : place;
}

function setAttribute(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

async function change(form: HTMLFormElement, submitter: HTMLElement | null): Promise<void> {
  const address = submitter?.getAttribute('formaction') ?? form.getAttribute('action') ?? '';
  let message: string;
  try {
    const answer = await fetch(address, {
      method: 'POST',
      headers: { accept: 'application/json' },
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    const isJson = answer.headers.get('content-type') === 'application/json';
    message = isJson ? ((await answer.json()) as { message: string }).message : await answer.text();
  } catch {
    message = 'The sidecar does not answer: nothing is known to have changed.';
  }
  told.textContent = message;
  told.hidden = false;
  clearTimeout(forgetting);
  forgetting = setTimeout(() => {
    told.hidden = true;
  }, TOLD_MS);
  await refresh();
}

document.addEventListener('submit', (event) => {
  event.preventDefault();
  void change(event.target as HTMLFormElement, event.submitter);
});

for (;;) {
  await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  await refresh();
}
