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
    '`token-sidecar explain CODE` says more, with examples; it also explains the [steps of check](check.md). Codes stay as they are from one version to the next.',
    '',
    `## ${errors.title}`,
    '',
    'They are problem details (`application/problem+json`, RFC 9457) with a member `code`, and the header `token-sidecar-error` with the',
    'same code. An answer of the upstream never carries that header. `token_unavailable`, `overloaded`, `too_many_requests` and',
    '`caller_unverified` come with `Retry-After`. gRPC calls get [a gRPC answer](grpc.md#what-the-proxy-answers-itself) in their place.',
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
    ...Object.entries(mistakes.explanations).map(([code, { title }]) => `- \`${code}\`: ${title}`),
    '',
  ].join('\n');
}

function sectionOf([code, { title, text, remedy }]: Explained): string {
  const todo = remedy === undefined ? '' : ` *What to do:* ${remedy}`;
  return [`### ${code}`, '', `${answerOf(code)}**${title}.** ${text}${todo}`, ''].join('\n');
}

/** `502, gRPC 14 UNAVAILABLE. `; empty for what is no answer. */
function answerOf(code: string): string {
  const row = Object.entries(ERRORS).find(([name]) => name === code)?.[1];
  return row !== undefined && 'status' in row
    ? `${row.status}, gRPC ${GRPC_STATUS[row.grpc]} ${row.grpc}. `
    : '';
}
