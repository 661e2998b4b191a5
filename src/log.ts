import winston from 'winston';

export type Log = winston.Logger;

/**
 * The process's log: one JSON object a line on standard output, with an ISO 8601 time. Callers never hand it
 * a key (save its public id), a user id or a body.
 */
export function createLog(level: string): Log {
  return winston.createLogger({
    level,
    format: winston.format.combine(
      winston.format.timestamp(),
      winston.format.errors({ stack: true }),
      winston.format.json(),
    ),
    transports: [new winston.transports.Console({ stderrLevels: [] })],
  });
}
