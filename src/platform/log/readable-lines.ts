import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

const LEVELS: Readonly<Record<string, Style>> = {
  trace: 'gray',
  debug: 'cyan',
  info: 'green',
  warn: ['yellow', 'bold'],
  error: ['red', 'bold'],
  fatal: ['white', 'bgRed'],
};

const WIDEST_LEVEL = 5;

/**
 * `22:14:03  INFO   listening  proxy=127.0.0.1:15080 admin=[::]:15081`, in local time. Text that is not the log's is
 * unchanged.
 */
export function readableLine(line: string, { colour }: { readonly colour: boolean }): string {
  const fields = parseLine(line);
  if (fields === undefined) return line;
  const paint = (style: Style, text: string) =>
    colour ? styleText(style, text, { validateStream: false }) : text;
  const { level, time, msg, ...facts } = fields;
  const name = typeof level === 'string' ? level : 'info';
  const shown = Object.entries(facts).map(
    ([key, value]) => `${paint('dim', `${printable(key)}=`)}${quotedValue(value)}`,
  );
  const head = [
    paint('dim', localTime(time)),
    paint(LEVELS[name] ?? 'bold', printable(name).toUpperCase().padEnd(WIDEST_LEVEL)),
    paint('bold', printable(String(msg ?? ''))),
  ];
  return `${[...head, shown.join(' ')].join('  ').trimEnd()}\n`;
}

type Fields = Readonly<Record<string, unknown>>;

function parseLine(line: string): Fields | undefined {
  if (!line.startsWith('{"level":')) return undefined;
  try {
    return JSON.parse(line) as Fields;
  } catch {
    return undefined;
  }
}

function localTime(time: unknown): string {
  const date = new Date(String(time));
  return Number.isNaN(date.getTime()) ? '--:--:--' : date.toTimeString().slice(0, 8);
}

/** Quotes text that is not a word; shows an error's messages down to its cause. */
function quotedValue(value: unknown): string {
  if (typeof value === 'string') return /^[\x21\x23-\x7e]+$/.test(value) ? value : quoted(value);
  return isError(value) ? quoted(errorText(value)) : quotedJson(value);
}

interface LoggedError {
  readonly message: string;
  readonly code?: unknown;
  readonly cause?: unknown;
}

function isError(value: unknown): value is LoggedError {
  return typeof (value as Partial<LoggedError> | null)?.message === 'string';
}

function errorText({ message, code, cause }: LoggedError): string {
  const own = typeof code === 'string' && !message.includes(code) ? `${message} (${code})` : message;
  return isError(cause) ? `${own}: ${errorText(cause)}` : own;
}

/** Control characters could overwrite the screen. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?');
}

function quoted(text: string): string {
  return printable(JSON.stringify(text));
}

function quotedJson(value: unknown): string {
  return printable(JSON.stringify(value) ?? 'undefined');
}
