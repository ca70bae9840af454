import type { AdminEndpoint } from '../admin/admin-server.ts';
import type { LogLevel } from '../platform/log/logger.ts';
import type { RenewalResponse } from '../token/token-source.ts';
import { logLevelEndpoint, renewEndpoint } from './status/page/actions.ts';
import type { StatusPage } from './status/page/status-page.ts';
import type { StatusSources } from './status/read-status.ts';

interface StatusActions {
  /** Undefined if there is no such credential. */
  renew(credential: string): RenewalResponse | undefined;
  setLogLevel(level: LogLevel): void;
}

export function statusEndpoints(
  sources: StatusSources,
  { renew, setLogLevel }: StatusActions,
): Readonly<Record<string, AdminEndpoint>> {
  let loaded: Promise<StatusPage> | undefined;
  const whenAsked = (part: keyof StatusPage): AdminEndpoint => ({
    method: 'GET',
    audience: 'people',
    variant: () => 'only',
    async answer(request) {
      loaded ??= import('./status/page/status-page.ts').then(({ openStatusPage }) => openStatusPage(sources));
      return (await loaded)[part].answer(request);
    },
  });
  return {
    '/': whenAsked('page'),
    '/api/status': whenAsked('report'),
    '/api/renew': renewEndpoint(renew),
    '/api/log-level': logLevelEndpoint(setLogLevel),
  };
}
