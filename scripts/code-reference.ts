import { CHAPTERS } from '../src/cli/explain/explanations.ts';
import { ERRORS } from '../src/platform/errors.ts';
import { GRPC_STATUS } from '../src/platform/grpc-status.ts';

type Chapter = (typeof CHAPTERS)[number];
type Explained = readonly [string, Chapter['explanations'][string]];

/** What `token-sidecar explain` says without its examples, and what each error is answered with, as a page. */
export function codeReference(generated: string): string {
  const [mistakes, errors, statuses] = CHAPTERS as readonly [Chapter, Chapter, Chapter];
  const all = Object.entries(errors.explanations);
  const answered = all
    .filter(([code]) => answerOf(code) !== '')
    .sort(([a], [b]) => answerOf(a).localeCompare(answerOf(b)));
  const ending = all.filter(([code]) => answerOf(code) === '');
  return [
    '# Codes and what they mean',
    '',
    generated,
    '',
    '`token-sidecar explain CODE` says the same, with examples, also for the [steps of check](check.md). In italics: what to do. Codes never change.',
    '',
    `## ${errors.title}`,
    '',
    'Problem details (`application/problem+json`, RFC 9457) have the code as `code`, and in the header `token-sidecar-error`, which no answer of',
    'the upstream carries. gRPC calls get [a gRPC answer](grpc.md#what-the-proxy-answers-itself). `token_unavailable`, `overloaded`,',
    '`too_many_requests` and `caller_unverified` come with `Retry-After`.',
    '',
    ...answered.map(sectionOf),
    '## What ends a connection',
    '',
    'The connection of the app is closed, the log says why, and `token_sidecar_proxy_errors_total` counts it.',
    '',
    ...ending.map(sectionOf),
    `## ${statuses.title}`,
    '',
    ...Object.entries(statuses.explanations).map(sectionOf),
    `## ${mistakes.title}`,
    '',
    'Each is reported with its place, the value, what is expected and what to do.',
    '',
    ...linesOf(Object.keys(mistakes.explanations)),
    '',
  ].join('\n');
}

/** Indented, so that words are shown as they are. */
function linesOf(words: readonly string[]): string[] {
  const wrapped = words.join(' ').match(/\S.{0,94}(?= |$)/g) ?? [];
  return wrapped.map((line) => `    ${line.trim()}`);
}

function sectionOf([code, { title, text, remedy }]: Explained): string {
  const todo = remedy === undefined ? '' : ` *${remedy}*`;
  return [`### ${code}`, '', `${answerOf(code)}**${title}.** ${text}${todo}`, ''].join('\n');
}

/** `502, gRPC 14 UNAVAILABLE. `; empty for what is no answer. */
function answerOf(code: string): string {
  const row = Object.entries(ERRORS).find(([name]) => name === code)?.[1];
  return row !== undefined && 'status' in row
    ? `${row.status}, gRPC ${GRPC_STATUS[row.grpc]} ${row.grpc}. `
    : '';
}
