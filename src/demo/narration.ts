import { styleText } from 'node:util';
import { type Facts, sentenceFor } from './sentences.ts';

interface Narration {
  /** Takes the log's JSON lines. */
  write(logLine: string): void;
  /** What the person at the keyboard did. */
  say(text: string): void;
  /** What the app sees, good or bad. */
  tellOfApp(text: string, isWell: boolean): void;
  /** Appends a remark to each line from now on. */
  add(remark: () => string): void;
}

type Style = 'dim' | 'green' | 'yellow' | 'red' | 'cyan';

const STYLES: Readonly<Record<string, Style>> = { warn: 'yellow', error: 'red', fatal: 'red' };

const FAILED = 'request not completed';

/**
 * Tells a person about the sidecar's log: one or two sentences per event. A continuing failure is told once, and again
 * after something has changed; remarks have the count.
 */
export function narrate(print: (line: string) => void): Narration {
  let remark: (() => string) | undefined;
  let goingOn: string | undefined;

  function tell(text: string, style: Style | undefined): void {
    const time = new Date().toTimeString().slice(0, 8);
    const told = style === undefined ? text : paint(style, text);
    print(`${paint('dim', time)}  ${told}${remark === undefined ? '' : paint('dim', `  (${remark()})`)}`);
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
      if (msg === `${FAILED}: more of the same were left out`) return;
      const text = sentenceFor(String(msg), facts);
      if (msg === FAILED && text === goingOn) return;
      if (msg === FAILED) goingOn = text;
      if (msg === 'token obtained') goingOn = undefined;
      const style = msg === 'token obtained' ? 'green' : STYLES[String(level)];
      tell(text ?? withFacts(level, msg, facts), style);
    },
  };
}

/** In colour on a terminal, unless NO_COLOR or its type forbids it. */
function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

/** A line without a sentence of its own. */
function withFacts(level: unknown, text: unknown, facts: Facts): string {
  const details = Object.entries(facts).map(([name, value]) => `${name} ${format(value)}`);
  return `${level === 'info' ? '' : `${level}: `}${text}${details.length > 0 ? `: ${details.join(', ')}` : ''}`;
}

function format(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
