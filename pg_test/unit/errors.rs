//! Errors keep their SQLSTATE, DETAIL and HINT on every way out.

#[pgrx::pg_schema]
mod tests {
    use pgrx::prelude::*;

    use crate::error::{keeping_sqlstate, Report};
    use crate::unit_tests::support::{error_of, sqlstate_of};

    #[pg_extern]
    fn raise_report(sqlstate: &str, position: i32) -> i32 {
        Report::new(sqlstate, "what happened").detail("why").hint("what to do").position(position).raise()
    }

    /// An error that passes a PostgreSQL function called from Rust.
    #[pg_extern]
    fn raise_through_spi(sqlstate: &str) -> i32 {
        let query = format!("SELECT tests.raise_report('{sqlstate}', 3)");
        keeping_sqlstate(|| Spi::get_one::<i32>(&query)).ok().flatten().unwrap_or_default()
    }

    #[pg_extern]
    fn warn_report() {
        Report::new("01C42", "careful").detail("why").warn();
        Report::new("01C42", "careful").log();
        Report::new("01C42", "careful").notice();
    }

    #[pg_test]
    fn an_error_has_the_sqlstate_it_was_raised_with() {
        for sqlstate in ["42K01", "42K03", "22023", "XX001", "XX000", "CAZ09"] {
            for position in [0, 5] {
                assert_eq!(
                    error_of(&format!("SELECT tests.raise_report('{sqlstate}', {position})")),
                    format!("{sqlstate}|what happened|why|what to do"),
                );
            }
        }
    }

    #[pg_test]
    fn an_error_through_spi_keeps_its_sqlstate() {
        for sqlstate in ["42K02", "22023"] {
            let error = error_of(&format!("SELECT tests.raise_through_spi('{sqlstate}')"));
            // Where RUST_BACKTRACE is set, pgrx adds a backtrace to the DETAIL.
            assert!(error.starts_with(&format!("{sqlstate}|what happened|why")), "{error}");
            assert!(error.ends_with("|what to do"), "{error}");
        }
    }

    #[pg_test]
    fn an_error_leaves_later_errors_alone() {
        assert_eq!(sqlstate_of("SELECT tests.raise_report('42K01', 0)"), "42K01");
        assert_eq!(sqlstate_of("SELECT tests.raise_report('XX000', 0)"), "XX000");
        assert_eq!(sqlstate_of("SELECT 1 / 0"), "22012");
        assert_eq!(sqlstate_of("SELECT tests.raise_through_spi('XX000')"), "XX000");
    }

    #[pg_test]
    fn a_warning_lets_the_statement_go_on() {
        assert_eq!(error_of("SELECT tests.warn_report()"), "no error");
    }
}
