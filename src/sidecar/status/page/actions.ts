/** Changes by POST: on loopback, from no other site's page. */

import { type AdminEndpoint, json } from '../../../admin/admin-server.ts';
import { LOG_LEVELS, type LogLevel } from '../../../platform/log/logger.ts';
import type { RenewalResponse } from '../../../token/token-source.ts';

const ANSWERS: Readonly<
  Record<RenewalResponse, readonly [status: number, sentence: (name: string) => string]>
> = {
  begun: [202, (name) => `A token is being asked for, for credential ${name}.`],
  too_soon: [429, (name) => `Credential ${name} was asked for moments ago: once in ten seconds is enough.`],
  impossible: [
    409,
    (name) =>
      `Credential ${name} gets no token by itself now: its Secret cannot be used, or requests bring their own.`,
  ],
};

/** `POST /api/renew?credential=NAME` */
export function renewEndpoint(renew: (credential: string) => RenewalResponse | undefined): AdminEndpoint {
  return change((query) => {
    const name = query.get('credential') ?? '';
    const answer = renew(name);
    if (answer === undefined) return [404, `There is no credential ${JSON.stringify(name.slice(0, 100))}.`];
    const [status, sentence] = ANSWERS[answer];
    return [status, sentence(name)];
  });
}

/** `POST /api/log-level?level=LEVEL` */
export function logLevelEndpoint(set: (level: LogLevel) => void): AdminEndpoint {
  return change((query) => {
    const level = LOG_LEVELS.find((each) => each === query.get('level'));
    if (level === undefined) return [400, `The level must be one of ${LOG_LEVELS.join(', ')}.`];
    set(level);
    return [200, `The log level is ${level} until the next start.`];
  });
}

function change(make: (query: URLSearchParams) => readonly [status: number, message: string]): AdminEndpoint {
  return {
    method: 'POST',
    loopbackOnly: true,
    answer(request) {
      const [status, message] = make(request.query);
      if (status < 400 && /\btext\/html\b/.test(request.accept)) return backToPage(message);
      return json(status, { message });
    },
  };
}

/** Without a script, reloads the page (RFC 9110 §15.4.4). */
function backToPage(message: string): ReturnType<AdminEndpoint['answer']> {
  return {
    status: 303,
    contentType: 'text/plain; charset=utf-8',
    body: `${message}\n`,
    headers: { Location: '../' },
  };
}
