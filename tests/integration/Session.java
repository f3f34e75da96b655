// What a Java program does with PostgreSQL's own JDBC driver; prints what it sees, line by line.

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

public class Session {
    static String names(ResultSet found, String column) throws SQLException {
        List<String> names = new ArrayList<>();
        while (found.next()) names.add(found.getString(column));
        return String.join(" ", names);
    }

    static void looks(DatabaseMetaData about) throws SQLException {
        System.out.println("schemas " + names(about.getSchemas(), "TABLE_SCHEM"));
        System.out.println("tables " + names(about.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME"));
        System.out.println("columns " + names(about.getColumns(null, "public", "people", "%"), "COLUMN_NAME"));
        System.out.println("types " + names(about.getColumns(null, "public", "people", "%"), "TYPE_NAME"));
        System.out.println("keys " + names(about.getPrimaryKeys(null, "public", "people"), "COLUMN_NAME"));
        System.out.println("foreign " + names(about.getImportedKeys(null, "public", "people"), "FKCOLUMN_NAME"));
        System.out.println("indexes " + names(about.getIndexInfo(null, "public", "people", false, true), "INDEX_NAME"));
        System.out.println("keywords " + about.getSQLKeywords());
        about.getTypeInfo().close();
        about.getBestRowIdentifier(null, "public", "people", DatabaseMetaData.bestRowSession, true).close();
        about.getTablePrivileges(null, "public", "people").close();
        about.getProcedures(null, null, "%").close();
    }

    public static void main(String[] words) throws Exception {
        try (Connection link = DriverManager.getConnection(words[0], "ana", System.getenv("PGPASSWORD"))) {
            looks(link.getMetaData());
            String sql = "SELECT sex, COUNT(*) AS n, COUNT(*) * 0.5 AS half FROM people "
                + "WHERE age > ? AND joined >= ? AND region = ? AND member = ? GROUP BY sex";
            try (PreparedStatement ask = link.prepareStatement(sql)) {
                System.out.println("described " + ask.getMetaData().getColumnTypeName(2)
                    + " " + ask.getParameterMetaData().getParameterTypeName(1));
                for (int time = 0; time < 7; time++) { // from the fifth on by a named statement, in binary
                    ask.setInt(1, 23);
                    ask.setDate(2, Date.valueOf("2020-02-01"));
                    ask.setString(3, "East");
                    ask.setBoolean(4, true);
                    ResultSet rows = ask.executeQuery();
                    rows.next();
                    System.out.println("asked " + rows.getString(1) + " " + rows.getLong(2) + " " + rows.getDouble(3)
                        + " " + (ask.getWarnings() != null));
                }
            }
            link.setAutoCommit(false);
            try (Statement pieces = link.createStatement()) {
                pieces.setFetchSize(2);
                System.out.println("pieces " + names(pieces.executeQuery(
                    "SELECT region, COUNT(*) FROM people GROUP BY region"), "region"));
                Savepoint safe = link.setSavepoint();
                try {
                    pieces.executeQuery("SELECT COUNT(*) FROM people WHERE salary > 1");
                } catch (SQLException refused) {
                    System.out.println("refused " + refused.getSQLState());
                }
                link.rollback(safe);
                pieces.setMaxRows(1);
                System.out.println("first " + names(pieces.executeQuery("SELECT DISTINCT region FROM people"), "region"));
            }
            link.rollback();
            System.out.println("valid " + link.isValid(5));
        }
    }
}
