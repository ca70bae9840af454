/** Tells the sidecar's log as sentences. */

import { styleText } from 'node:util';

interface Narration {
  write(logLine: string): void;
  say(text: string): void;
  tellOfApp(text: string, isWell: boolean): void;
  /** To each line from now on. */
  add(remark: () => string): void;
}

type Style = 'dim' | 'green' | 'yellow' | 'red' | 'cyan';

const STYLES: Readonly<Record<string, Style>> = { warn: 'yellow', error: 'red', fatal: 'red' };

const FAILED = 'request not completed';

/** A continuing failure is told again only after something has changed. */
export function narrate(print: (line: string) => void): Narration {
  let remark: (() => string) | undefined;
  let goingOn: string | undefined;

  function tell(text: string, style: Style | undefined): void {
    const time = new Date().toTimeString().slice(0, 8);
    const columns = (process.stdout.columns || Number.POSITIVE_INFINITY) - INDENTED.length;
    const lines = linesOf(text, columns);
    const told = lines.map((line) => (style === undefined ? line : paint(style, line))).join(INDENTED);
    const remarks = remark === undefined ? '' : `(${remark()})`;
    const isRoom = (lines.at(-1) ?? '').length + 2 + remarks.length <= columns;
    const remarked = remarks === '' ? '' : `${isRoom ? '  ' : INDENTED}${paint('dim', remarks)}`;
    print(`${paint('dim', time)}  ${told}${remarked}`);
  }

  return {
    say(text) {
      goingOn = undefined;
      tell(text, 'cyan');
    },
    tellOfApp(text, isWell) {
      tell(text, isWell ? 'green' : 'yellow');
    },
    add(next) {
      remark = next;
    },
    write(logLine) {
      const { msg, level, time, credential, ...facts } = JSON.parse(logLine) as Facts;
      if (String(msg).startsWith(`${FAILED}: `)) return;
      const text = sentenceFor(String(msg), facts);
      if (msg === FAILED && text === goingOn) return;
      if (msg === FAILED) goingOn = text;
      if (msg === 'token obtained') goingOn = undefined;
      const style = msg === 'token obtained' ? 'green' : STYLES[String(level)];
      tell(text ?? withFacts(level, msg, facts), style);
    },
  };
}

/** Below the text, past the time. */
const INDENTED = `\n${' '.repeat(10)}`;

function linesOf(text: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= columns) lines.push(`${lines.pop()} ${word}`);
    else lines.push(word);
  }
  return lines;
}

/** Unless NO_COLOR or the terminal's type forbids it. */
function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

function withFacts(level: unknown, text: unknown, facts: Facts): string {
  const details = Object.entries(facts).map(([name, value]) => `${name} ${format(value)}`);
  return `${level === 'info' ? '' : `${level}: `}${text}${details.length > 0 ? `: ${details.join(', ')}` : ''}`;
}

function format(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

type Facts = Readonly<Record<string, unknown>>;

const GRANTED: Readonly<Record<string, string>> = {
  startup: 'The sidecar got its first token',
  scheduled: 'The sidecar renewed the token ahead of its end',
  rotation: 'The sidecar got a token with the new client secret',
  upstream_401: 'The sidecar got another token, because the API refused the last one',
  retry: 'The sidecar tried again and got a token',
};

const SENTENCES: Readonly<Record<string, (facts: Facts) => string>> = {
  'credentials loaded': () => 'The sidecar read the client id and secret from the mounted Secret.',
  'credentials changed': () => 'The sidecar saw that the mounted Secret changed.',
  listening: ({ proxy, admin }) => `The sidecar listens on ${proxy}, its status page is on ${admin}.`,
  ready: ({ sinceStartMs }) => `The sidecar is ready, ${seconds(sinceStartMs)} after the start.`,
  'token obtained': granted,
  'no token obtained': notGranted,
  'token obtained with the previous credentials: the newest are rejected': (facts) =>
    `The new client secret is rejected, so the sidecar got a token with the previous one${next(facts)}.`,
  'request not completed': ({ error, reason }) => `A request failed (${error}): ${reason}.`,
  draining: () => 'The sidecar finishes what is in flight.',
  stopped: () => 'The sidecar has stopped.',
};

function sentenceFor(text: string, facts: Facts): string | undefined {
  return Object.hasOwn(SENTENCES, text) ? SENTENCES[text]?.(facts) : undefined;
}

function granted(facts: Facts): string {
  const what = GRANTED[String(facts['reason'])] ?? `The sidecar got a token (${facts['reason']})`;
  const lives = facts['lifetimeMs'] === undefined ? '' : ` It lives ${seconds(facts['lifetimeMs'])}.`;
  const renewal = facts['nextInMs'] === undefined ? '' : ` The next is due in ${seconds(facts['nextInMs'])}.`;
  return `${what}, in ${seconds(facts['durationMs'])}.${lives}${renewal}`;
}

function notGranted(facts: Facts): string {
  const heldMs = Number(facts['heldTokenEndsInMs'] ?? 0);
  const consequence =
    heldMs > 0
      ? `The app is served with the token in hand, for ${seconds(heldMs)} yet`
      : 'No token is left: the app gets 503 until there is one';
  const verb =
    facts['result'] === 'rejected' ? 'The provider rejected the client' : 'The provider gave no token';
  return `${verb} (${facts['detail']}). ${consequence}${next(facts)}.`;
}

function next(facts: Facts): string {
  return facts['nextInMs'] === undefined ? '' : `; the sidecar asks again in ${seconds(facts['nextInMs'])}`;
}

/** `0.3 s`, `12 s`, `80 ms`. */
export function seconds(ms: unknown): string {
  const given = Number(ms);
  if (given < 100) return `${Math.round(given)} ms`;
  return given < 9950 ? `${(given / 1000).toFixed(1)} s` : `${Math.round(given / 1000)} s`;
}
