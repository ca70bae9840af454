import type { Destination } from '../routing/destination.ts';
import type { RequestService, ServedExchange } from './request-service.ts';

/** Serves a CONNECT to a host whose TLS ends here. */
export interface Interceptor {
  serve(exchange: ServedExchange, destination: Destination): RequestService;
}
